package kube

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/topology"
)

// atlas is a topology file, and nodes that go by it.
type atlas struct {
	*shelf
	t          *testing.T
	places     *Places
	store      cache.Indexer
	unreadable atomic.Int32
}

func newAtlas(t *testing.T, text string) *atlas {
	t.Helper()
	a := &atlas{shelf: newShelf(), t: t, store: cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)}
	a.places = &Places{
		File: filepath.Join(t.TempDir(), "topology.yaml"), Every: 10 * time.Second, Books: &a.Books,
		Nodes: corelisters.NewNodeLister(a.store), Unreadable: func() { a.unreadable.Add(1) },
	}
	a.write(text)
	return a
}

func (a *atlas) write(text string) {
	a.t.Helper()
	if err := os.WriteFile(a.places.File, []byte(text), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// seen has a node appear, in the informer's cache first.
func (a *atlas) seen(node *corev1.Node) {
	a.t.Helper()
	if err := a.store.Add(node); err != nil {
		a.t.Fatal(err)
	}
	a.NodeSeen(node)
}

func (a *atlas) at(id gpu.NodeID) topology.Location {
	n, _ := a.Ledger.Snapshot().Node(id)
	return n.Location
}

func (a *atlas) mustBe(when string, id gpu.NodeID, want topology.Location) {
	a.t.Helper()
	if got := a.at(id); got != want {
		a.t.Errorf("%s: %s is at %+v, want %+v", when, id, got, want)
	}
}

// TestPlacesFollowTheFile: labels come first, part by part; a file that changes is
// followed; and one that cannot be read any more changes nothing.
func TestPlacesFollowTheFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAtlas(t, "nodes: [{name: a, zone: z1, rack: r1, switch: s1}, {name: b, rack: r2}]")
		if err := a.places.Read(); err != nil {
			t.Fatal(err)
		}
		labelled := newNode("a", devices)
		labelled.Labels = map[string]string{codec.LabelRack: "label"}
		a.seen(labelled)
		a.seen(newNode("b", devices))
		a.mustBe("at first", "a", topology.Location{Zone: "z1", Rack: "label", Switch: "s1"})
		a.mustBe("at first", "b", topology.Location{Rack: "r2"})

		go func() { _ = a.places.Run(t.Context()) }()
		later := func(text string) { a.write(text); time.Sleep(11 * time.Second); synctest.Wait() }
		later("nodes: [{name: b, rack: r3}, {name: c, rack: r9}]")
		a.mustBe("changed", "a", topology.Location{Rack: "label"})
		a.mustBe("changed", "b", topology.Location{Rack: "r3"})
		a.seen(newNode("c", devices))
		a.mustBe("new", "c", topology.Location{Rack: "r9"})

		later("nodes: [{name: b, rak: r4}]")
		time.Sleep(time.Minute)
		synctest.Wait()
		a.mustBe("broken", "b", topology.Location{Rack: "r3"})
		if n := a.unreadable.Load(); n != 1 {
			t.Errorf("it was told %d times that the file is broken, want once", n)
		}
		if err := os.Remove(a.places.File); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		a.mustBe("gone", "b", topology.Location{Rack: "r3"})
		if n := a.unreadable.Load(); n != 2 {
			t.Errorf("it was told %d times that the file is broken or gone, want twice", n)
		}
		later("nodes: []")
		a.mustBe("emptied", "b", topology.Location{})
	})
}

// TestPlacesFollowAConfigMap: kubelet changes files of a ConfigMap by having a link
// to their folder name another folder, and takes the old one away.
func TestPlacesFollowAConfigMap(t *testing.T) {
	a := newAtlas(t, "")
	volume := t.TempDir()
	a.places.File = filepath.Join(volume, "topology.yaml")
	mount := func(folder, text string) {
		t.Helper()
		for _, err := range []error{
			os.Mkdir(filepath.Join(volume, folder), 0o700),
			os.WriteFile(filepath.Join(volume, folder, "topology.yaml"), []byte(text), 0o600),
			os.Symlink(folder, filepath.Join(volume, "..data_tmp")),
			os.Rename(filepath.Join(volume, "..data_tmp"), filepath.Join(volume, "..data")),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	mount("..1", "nodes: [{name: a, rack: r1}]")
	if err := os.Symlink(filepath.Join("..data", "topology.yaml"), a.places.File); err != nil {
		t.Fatal(err)
	}
	if err := a.places.Read(); err != nil {
		t.Fatal(err)
	}
	a.seen(newNode("a", devices))
	a.mustBe("at first", "a", topology.Location{Rack: "r1"})
	mount("..2", "nodes: [{name: a, rack: r2}]")
	if err := os.RemoveAll(filepath.Join(volume, "..1")); err != nil {
		t.Fatal(err)
	}
	a.places.look()
	a.mustBe("changed", "a", topology.Location{Rack: "r2"})
	mount("..3", "nodes: [{name: a, rack: r3}, {name: a, rack: r4}]")
	for range 3 {
		a.places.look()
	}
	a.mustBe("broken", "a", topology.Location{Rack: "r2"})
	mount("..4", "nodes: [{name: a, rack: r2}]")
	a.places.look()
	a.mustBe("mended", "a", topology.Location{Rack: "r2"})
	if n := a.unreadable.Load(); n != 1 {
		t.Errorf("it was told %d times that the file is broken, want once", n)
	}
}

// TestPlacesKeepTheNode: what the file changes is where the node is and nothing else,
// and what is not in the ledger does not come into it.
func TestPlacesKeepTheNode(t *testing.T) {
	a := newAtlas(t, "nodes: []")
	if err := a.places.Read(); err != nil {
		t.Fatal(err)
	}
	a.seen(newNode("a", devices))
	if err := a.store.Add(newNode("untold", devices)); err != nil {
		t.Fatal(err)
	}
	before, _ := a.Ledger.Snapshot().Node("a")
	a.write("nodes: [{name: a, rack: r1}, {name: untold, rack: r1}]")
	a.places.look()
	after, _ := a.Ledger.Snapshot().Node("a")
	if after.Location.Rack != "r1" || len(after.Cards) != len(before.Cards) {
		t.Errorf("it has become %+v", after.Facts)
	}
	if _, there := a.Ledger.Snapshot().Node("untold"); there {
		t.Error("a node is in the ledger that its handler has not told of")
	}
}

func TestPlacesThatCannotBeReadAtFirst(t *testing.T) {
	a := newAtlas(t, "nodes: [{rack: r1}]")
	if err := a.places.Read(); err == nil || !strings.Contains(err.Error(), "nodes[0].name") {
		t.Errorf("Read = %v", err)
	}
	a.places.File += ".missing"
	if err := a.places.Read(); err == nil {
		t.Error("a file that is not there is read")
	}
}
