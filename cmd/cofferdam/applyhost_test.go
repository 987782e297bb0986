package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestACopyOfARunElsewhereOnThisHost: --host unix:///PATH names another daemon of this host, which runs a sandbox in a copy
// of this user's. As long as it lives the copy can change, and nothing is brought over from it. The control: this user's own.
func TestACopyOfARunElsewhereOnThisHost(t *testing.T) {
	for name, elsewhere := range map[string]bool{"control: one's own daemon": false, "--host unix://": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorkplace(t)
			w.write("f", "before\n")
			host := []string{}
			if elsewhere {
				dir, err := os.MkdirTemp("", "d") //nolint:usetesting // a socket's path must be short
				if err != nil {
					t.Fatal(err)
				}
				other := func(args ...string) error {
					cmd := exec.CommandContext(context.WithoutCancel(t.Context()), filepath.Join("..", "..", "bin", "cofferdam"), args...)
					cmd.Env = append(os.Environ(), "COFFERDAM_STATE="+filepath.Join(dir, "s"), "COFFERDAM_RUNTIME="+filepath.Join(dir, "r"))
					return cmd.Run()
				}
				if err := other("list"); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = other("stop", "--force"); _ = os.RemoveAll(dir) })
				host = []string{"--host", "unix://" + filepath.Join(dir, "r", "daemon.sock")}
			}
			ended := make(chan string, 1)
			go func() {
				out, _ := w.cofferdam(append(host, "run", "--template", "host", "--no-project", "--workspace", "copy", "--run-id", "rx", "--", "sh", "-c", "echo shown > f; touch begun; while [ ! -e stop ]; do sleep 0.05; done")...)
				ended <- out
			}()
			copied := filepath.Join(filepath.Dir(w.dir), "state-workspaces", "rx", "copy")
			for {
				if _, err := os.Stat(filepath.Join(copied, "begun")); err == nil {
					break
				}
				select {
				case out := <-ended:
					t.Fatalf("INCONCLUSIVE: %s", out)
				case <-time.After(20 * time.Millisecond):
				}
			}
			out, err := w.cofferdam("apply", "--all", "rx")
			if err == nil || !strings.Contains(out, "still has the sandbox") {
				t.Errorf("a copy is brought over in which a sandbox writes: %v: %s", err, out)
			}
			_ = os.WriteFile(filepath.Join(copied, "stop"), nil, 0o666) // gone, where the copy was removed under it
			if err == nil {
				return // its sandbox ends with the daemon
			}
			<-ended
		})
	}
}
