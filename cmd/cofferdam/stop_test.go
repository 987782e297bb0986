package main

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// TestNoDaemonIsNoWordOfItsKeeper: only where nobody listens at the keeper's socket are there surely no sandboxes that have
// outlived their daemon; a keeper that can't be reached or breaks off may have some.
func TestNoDaemonIsNoWordOfItsKeeper(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make func(socket string) error
		want string
	}{
		"nothing is there": {make: func(string) error { return nil }},
		"nobody listens": {make: func(socket string) error {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
			if err == nil {
				l.SetUnlinkOnClose(false)
				err = l.Close()
			}
			return err
		}},
		"it is no way to anybody": {make: func(socket string) error { return os.Symlink(socket, socket) }, want: "can't be told"},
		"it breaks off": {make: func(socket string) error {
			l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", socket)
			if err == nil {
				t.Cleanup(func() { _ = l.Close() })
				go func() {
					for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
						_ = conn.Close()
					}
				}()
			}
			return err
		}, want: "can't be told"},
	} {
		paths := config.Paths{State: t.TempDir(), Runtime: t.TempDir()}
		if err := c.make(paths.KeeperSocket()); err != nil {
			t.Fatal(err)
		}
		err := stopLeft(t.Context(), paths, false)
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
