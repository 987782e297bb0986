package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
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

// TestAWrongSettingHasItsPlace: file, line and column, also where a command starts the daemon in the background.
func TestAWrongSettingHasItsPlace(t *testing.T) {
	umask := syscall.Umask(0o022)
	t.Cleanup(func() { syscall.Umask(umask) })
	for text, want := range map[string]string{
		"log: { level: info }\nupstreams:\n- ecosystem: python\n  index: https://index.example/simple/\n  ca_file: /there/is/none\n": "line 3, column 3: upstreams[0] can't be used: ",
		"log: { level: info }\ndefault_template: nosuch\n":                                                                           `line 2, column 19: default_template is "nosuch", and there is no such template`,
		"gateway_uid: -4\n": "line 1, column 14: gateway_uid is -4",
	} {
		for _, background := range []bool{false, true} {
			state := t.TempDir()
			t.Setenv("COFFERDAM_STATE", state)
			t.Setenv("COFFERDAM_RUNTIME", filepath.Join(state, "run"))
			path := filepath.Join(state, "config.yaml")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			err := (serveFlags{background: background}).serveDaemon(t.Context())
			if err == nil || !strings.Contains(err.Error(), "the configuration file "+path) || !strings.Contains(err.Error(), want) {
				t.Errorf("background %v: %v; want %q", background, err, want)
			}
		}
	}
}
