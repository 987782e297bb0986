package main

import (
	"net"
	"os"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/config"
)

// TestAPortThatIsTakenIsFoundBeforeTheDaemonIsAskedToEnd.
func TestAPortThatIsTakenIsFoundBeforeTheDaemonIsAskedToEnd(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "serve") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	paths := config.Paths{State: dir, Runtime: dir}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Config{Listen: config.Listen{Address: l.Addr().String()}}
	if err := mayServe(t.Context(), cfg, paths); err == nil || !strings.Contains(err.Error(), "another program listens on "+cfg.Listen.Address) {
		t.Errorf("a taken port: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := mayServe(t.Context(), cfg, paths); err != nil {
		t.Errorf("a free port: %v", err)
	}
}
