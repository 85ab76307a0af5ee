package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are chosen below those that Linux gives to whoever asks for any, a
// listener or an outgoing connection (net.ipv4.ip_local_port_range, from 32768):
// what is chosen here is not taken by chance before its process listens on it.
const (
	firstPort = 20000
	ports     = 12000
	portTries = 100
)

// chooseAddresses sets each of them to a loopback address of its own on which
// nothing listens.
func chooseAddresses(addresses ...*string) (err error) {
	// Held until all are chosen, so that no two are alike.
	var held []net.Listener
	defer func() {
		for _, l := range held {
			err = errors.Join(err, l.Close())
		}
	}()
	for _, address := range addresses {
		l, err := listen()
		if err != nil {
			return err
		}
		held = append(held, l)
		*address = l.Addr().String()
	}
	return nil
}

func listen() (l net.Listener, err error) {
	for range portTries {
		l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(ports)))
		if err == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("%d ports tried: %w", portTries, err)
}
