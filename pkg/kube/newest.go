package kube

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/pager"
)

// eachNewest reads all objects of a kind past every cache, and has see told of each: list
// is asked without a resource version, which is the newest.
func eachNewest[T runtime.Object](ctx context.Context, list func(context.Context, metav1.ListOptions) (runtime.Object, error), see func(T)) error {
	return pager.New(list).EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		if object, ok := o.(T); ok {
			see(object)
		}
		return nil
	})
}

// noteEnds makes over, which is guarded by mu, a map for those that end while a list is
// read, until done: what the list says of them is out of date.
func noteEnds(mu *sync.Mutex, over *map[types.UID]bool) (done func()) {
	set := func(to map[types.UID]bool) {
		mu.Lock()
		defer mu.Unlock()
		*over = to
	}
	set(map[types.UID]bool{})
	return func() { set(nil) }
}
