package sshserver_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sshserver"
)

// TestKeysAreMadeOnce: however many ask at once, all have the same, and nobody else may
// read them.
func TestKeysAreMadeOnce(t *testing.T) {
	t.Parallel()
	all := filepath.Join(t.TempDir(), "ssh")
	var asked sync.WaitGroup
	for range 20 {
		asked.Go(func() {
			if _, err := sshserver.KeysIn(all, "sb1", []string{"sb1"}); err != nil {
				t.Error(err)
			}
		})
	}
	asked.Wait()
	before, err := os.ReadFile(filepath.Join(all, "sb1", "host_key"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sshserver.KeysIn(all, "sb1", []string{"sb1"}); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(filepath.Join(all, "sb1", "host_key")); err != nil || !bytes.Equal(before, after) {
		t.Error("the host has another key:", err)
	}
	for path, want := range map[string]os.FileMode{".": 0o700, "sb1": 0o700, "sb1/host_key": 0o600, "sb1/id_ed25519": 0o600} {
		if info, err := os.Stat(filepath.Join(all, path)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v", path, info, err)
		}
	}
	left, err := os.ReadDir(all)
	if err != nil || len(left) != 1 {
		t.Errorf("%v %v", left, err)
	}
}

// TestKeysGoWithTheSandbox: and those that are a moment old may be of one that nobody has
// listed yet.
func TestKeysGoWithTheSandbox(t *testing.T) {
	t.Parallel()
	all := t.TempDir()
	for _, id := range []string{"old", "new", "living"} {
		if _, err := sshserver.KeysIn(all, id, []string{"old", "living"}); err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-time.Hour)
	for _, id := range []string{"old", "living"} {
		if err := os.Chtimes(filepath.Join(all, id), long, long); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := sshserver.KeysIn(all, "sb1", []string{"sb1", "living"}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(all, "old")); !os.IsNotExist(err) {
		t.Error("keys of a sandbox that is gone are there:", err)
	}
	for _, id := range []string{"new", "living"} {
		if _, err := os.Stat(filepath.Join(all, id)); err != nil {
			t.Error(err)
		}
	}
}

// TestBrokenKey says what to do.
func TestBrokenKey(t *testing.T) {
	t.Parallel()
	all := t.TempDir()
	if _, err := sshserver.KeysIn(all, "sb1", nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(all, "sb1", "id_ed25519"), []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sshserver.KeysIn(all, "sb1", nil); err == nil || !strings.Contains(err.Error(), "remove its folder, and new ones are made") {
		t.Error(err)
	}
}

// TestSettings: words of the proxy's command line are one each to the shell that ssh
// starts, and ssh replaces nothing in them.
func TestSettings(t *testing.T) {
	t.Parallel()
	all := filepath.Join(t.TempDir(), `with space, 50% "quoted"`)
	keys, err := sshserver.KeysIn(all, "sb1", nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := keys.Settings([]string{"/opt/it's/cofferdam", "ssh-proxy", "sb1", "--host", "https://h.example:1?100%"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Host sb1.cofferdam\n",
		`  ProxyCommand '/opt/it'\''s/cofferdam' ssh-proxy sb1 --host 'https://h.example:1?100%%'` + "\n",
		`with space, 50%% \"quoted\"/sb1/known_hosts"` + "\n",
		"  StrictHostKeyChecking yes\n",
		"  GlobalKnownHostsFile /dev/null\n", // what else this machine knows is of other hosts
		"  IdentitiesOnly yes\n",             // and the person's own keys are not shown here
		"  IdentityAgent none\n",
		"  PreferredAuthentications publickey\n",
		"  ForwardAgent no\n",
		"  ForwardX11 no\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if _, err := keys.Settings([]string{"a\nProxyCommand b"}); err == nil {
		t.Error("a line break became another setting")
	}
}
