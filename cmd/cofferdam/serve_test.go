package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
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
	if err := (serveFlags{}).mayServe(t.Context(), cfg, config.Source{}, paths); err == nil || !strings.Contains(err.Error(), "another program listens on "+cfg.Listen.Address) {
		t.Errorf("a taken port: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := (serveFlags{}).mayServe(t.Context(), cfg, config.Source{}, paths); err != nil {
		t.Errorf("a free port: %v", err)
	}
}

// TestAnotherLogIsFoundBeforeTheDaemonIsAskedToEnd, and accepted where that is said.
func TestAnotherLogIsFoundBeforeTheDaemonIsAskedToEnd(t *testing.T) {
	t.Parallel()
	paths := config.Paths{State: t.TempDir(), Runtime: t.TempDir()}
	log, err := audit.Open(paths.Audit(), audit.Options{KeyFile: paths.AuditKey()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), audit.Record{Kind: audit.KindDaemon, Outcome: audit.Finished}); err != nil {
		t.Fatal(err)
	}
	err = log.Close()
	_, note := log.Checkpoint()
	if err := errors.Join(err, os.WriteFile(paths.AuditSeen(), append(note, '\n'), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := (serveFlags{}).mayServe(t.Context(), config.Config{}, config.Source{}, paths); err != nil {
		t.Fatalf("the log as it was left: %v", err)
	}
	if err := os.RemoveAll(paths.Audit()); err != nil {
		t.Fatal(err)
	}
	if err := (serveFlags{}).mayServe(t.Context(), config.Config{}, config.Source{}, paths); err == nil || !strings.Contains(err.Error(), "rolled back") {
		t.Errorf("no log, where there was one: %v", err)
	}
	if err := (serveFlags{acceptRollback: true}).mayServe(t.Context(), config.Config{}, config.Source{}, paths); err != nil {
		t.Errorf("accepted: %v", err)
	}
}

// TestFilesThatAreNoCertificateAreFound, where before only their names were looked at.
func TestFilesThatAreNoCertificateAreFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if err := errors.Join(os.WriteFile(cert, []byte("no certificate"), 0o600), os.WriteFile(key, []byte("no key"), 0o600)); err != nil {
		t.Fatal(err)
	}
	cfg := config.Config{Listen: config.Listen{Address: "127.0.0.1:0"}}
	cfg.Listen.TLS.CertFile, cfg.Listen.TLS.KeyFile = cert, key
	err := (serveFlags{}).mayServe(t.Context(), cfg, config.Source{}, config.Paths{State: dir, Runtime: dir})
	if err == nil || !strings.Contains(err.Error(), "listen.tls") {
		t.Errorf("files that are no certificate: %v", err)
	}
}
