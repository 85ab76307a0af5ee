package engine

import (
	"context"
	"sync"
)

// gates lets one caller at a time through for each key. The zero value is ready
// for use.
type gates[K comparable] struct {
	mu   sync.Mutex
	open map[K]*gate // guarded by mu; only keys that somebody is in or waits for
}

type gate struct {
	token chan struct{} // holds one token while nobody is in
	users int           // guarded by gates.mu: in or waiting
}

// enter waits until it is the caller's turn, or ctx ends. The caller must call
// leave once.
func (g *gates[K]) enter(ctx context.Context, key K) (leave func(), err error) {
	at := g.join(key)
	select {
	case <-at.token:
		return g.leave(key, at), nil
	case <-ctx.Done():
		g.quit(key, at)
		return nil, ctx.Err()
	}
}

// tryEnter is enter that does not wait: free is false when somebody else is in.
func (g *gates[K]) tryEnter(key K) (leave func(), free bool) {
	at := g.join(key)
	select {
	case <-at.token:
		return g.leave(key, at), true
	default:
		g.quit(key, at)
		return nil, false
	}
}

// leave returns what lets the next one in.
func (g *gates[K]) leave(key K, at *gate) func() {
	return func() { at.token <- struct{}{}; g.quit(key, at) }
}

func (g *gates[K]) join(key K) *gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := g.open[key]
	if at == nil {
		at = &gate{token: make(chan struct{}, 1)}
		at.token <- struct{}{}
		if g.open == nil {
			g.open = map[K]*gate{}
		}
		g.open[key] = at
	}
	at.users++
	return at
}

func (g *gates[K]) quit(key K, at *gate) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at.users--; at.users == 0 {
		delete(g.open, key)
	}
}
