package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
)

const (
	// farHost is a host on the network, as sandboxes know it. On port 8443 (unreadHost) it
	// is the same server, and nothing that is said to it is read on the way.
	farHost    = "far.example"
	unreadHost = farHost + ":8443"

	farPolicy = "name: bench-network\npackages: { default: deny }\nnetwork_allowlist:\n" +
		"  - " + farHost + "\n  - { host: " + farHost + ", port: 8443, tcp: true }\n"

	farRounds       = 20
	farRequests     = 500
	passThrough     = 0.8 // of the speed of what is not read
	passThroughTime = 1.5 // of the time of what is not read
)

// configureHosts is the part of a configuration that says where the host is.
func configureHosts(w io.Writer, address string) {
	fmt.Fprintf(w, "network:\n  hosts:\n")
	for _, port := range []int{443, 8443} {
		fmt.Fprintf(w, "    - { name: %s, port: %d, address: %q }\n", farHost, port, address)
	}
}

// measureNetwork fetches a large and a small file from a host that the policy lists: by
// TLS that is read as far as its server's name, and unread, which is what the way costs.
func measureNetwork(ctx context.Context, b *bench) (err error) {
	_, d, done, err := b.besideStatic(ctx, farPolicy)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	if err := b.farSpeed(d); err != nil {
		return err
	}
	return b.farRequest(d)
}

func (b *bench) farSpeed(d *driver) error {
	path := "/files/" + b.registry.big.file
	var read, unread, inside sample
	n := b.rounds(farRounds)
	for i := range n + 1 {
		b.progress.round("100 MB from a host", i, n)
		for _, from := range []struct {
			host   string
			sample *sample
		}{{farHost, &read}, {unreadHost, &unread}, {"127.0.0.1:" + strconv.Itoa(securePort), &inside}} {
			got, err := d.do(curl("https://" + from.host + path))
			if err != nil {
				return err
			}
			if i > 0 {
				*from.sample = append(*from.sample, speed(got.took()))
			}
		}
	}
	b.table.add(figure("100 MB of a listed host over TLS, curl inside", unitSpeed, read).beside("the same, unread (tcp: true)", unread).
		target(fmt.Sprintf(">= %.1f x", passThrough), read.median() >= passThrough*unread.median()))
	b.table.add(figure("  the same", unitSpeed, read).beside("TLS server inside", inside))
	return nil
}

func (b *bench) farRequest(d *driver) error {
	path := "/files/" + smallWheel().file
	var read, unread sample
	n := b.rounds(farRequests)
	for i := range n + 1 {
		b.progress.round("a small request", i, n)
		for _, from := range []struct {
			host   string
			sample *sample
		}{{farHost, &read}, {unreadHost, &unread}} {
			got, err := d.do(ask{Verb: "get", Host: from.host, Path: path})
			if err != nil {
				return err
			}
			if i > 0 {
				from.sample.add(got.took())
			}
		}
	}
	b.table.add(figure("  a small request on a connection that is kept", unitTime, read).beside("the same, unread (tcp: true)", unread).
		target(fmt.Sprintf("<= %.1f x", passThroughTime), read.median() <= passThroughTime*unread.median()))
	return nil
}
