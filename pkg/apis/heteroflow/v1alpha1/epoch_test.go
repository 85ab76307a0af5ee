package v1alpha1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDeepCopyOfEpochs(t *testing.T) {
	list := func() *EpochList {
		return &EpochList{Items: []Epoch{{
			TypeMeta:   metav1.TypeMeta{APIVersion: APIVersion, Kind: EpochKind},
			ObjectMeta: metav1.ObjectMeta{Name: EpochName, Labels: map[string]string{"a": "b"}},
			Spec:       EpochSpec{Number: 7, Holder: "h"},
		}}}
	}
	l := list()
	c := l.DeepCopyObject().(*EpochList)
	if diff := cmp.Diff(l, c); diff != "" {
		t.Fatalf("copy (-original +copy):\n%s", diff)
	}
	c.Items[0].Labels["a"] = "c"
	c.Items[0].Spec.Number = 8
	if diff := cmp.Diff(list(), l); diff != "" {
		t.Errorf("the original has changed (-before +after):\n%s", diff)
	}
}
