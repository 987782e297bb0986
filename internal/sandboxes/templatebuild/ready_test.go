package templatebuild_test

import (
	"net"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/templatebuild"
)

// TestReady: the ready command is asked until it says yes while the start command runs
// on, and what runs is in the result; one that never says so ends the build.
func TestReady(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]int{"after a while": 5, "never": 1 << 30} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newShop(t)
				defer s.builder.Close()
				asked := 0
				s.answer = func(c sandbox.Command) (channel.Exit, string) {
					s.mu.Lock()
					defer s.mu.Unlock()
					if asked++; c.Argv[len(c.Argv)-1] == "is it" && asked < after {
						return channel.Exit{Code: 1}, ""
					}
					return channel.Exit{}, ""
				}
				b := s.begin()
				s.start(b.ID, templatebuild.Recipe{Start: "wait", Ready: "is it"})
				synctest.Wait()
				for b, _ = s.look(b.ID); b.Status == templatebuild.Building; b, _ = s.look(b.ID) {
					<-time.After(time.Second)
				}
				close(s.hold)
				all, err := s.Snapshots(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if after > 5 {
					if b.Status != templatebuild.Failed || !strings.Contains(b.Reason, "not ready within") || len(all) != 0 {
						t.Errorf("%+v, %v", b, all)
					}
					return
				}
				if b.Status != templatebuild.Ready || all[0].Contents != engine.ContentsMemory || all[0].Built.Start != "wait" || s.commands[0].Timeout != 0 {
					t.Errorf("%+v, %+v", b, all)
				}
			})
		})
	}
}

// TestAStartThatFailsAfterAll: a start command that fails when the ready command has
// said yes fails the build, as it does before: in the copies it would not run. One that
// ends well may have left others behind.
func TestAStartThatFailsAfterAll(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]int{"it fails": 3, "it ends well": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newShop(t)
				defer s.builder.Close()
				s.answer = func(c sandbox.Command) (channel.Exit, string) {
					if c.Judged == "wait" {
						return channel.Exit{Code: code}, "last words\n"
					}
					return channel.Exit{}, ""
				}
				s.kept = func() {
					close(s.hold)
					<-time.After(time.Second) // its end is read
				}
				b := s.begin()
				s.start(b.ID, templatebuild.Recipe{Start: "wait", Ready: "is it"})
				s.await(b.ID)
				b, log := s.look(b.ID)
				switch {
				case code == 0 && b.Status != templatebuild.Ready:
					t.Errorf("%+v\n%s", b, log)
				case code != 0:
					if b.Status != templatebuild.Failed || b.Step != "finalize" || !strings.Contains(b.Reason, "the start command failed: the command ended with exit code 3: last words") {
						t.Errorf("%+v\n%s", b, log)
					}
					s.nothingLeft()
				}
			})
		})
	}
}

// TestReadyForAPort: what the SDKs write to wait for a port works without ss, and finds a
// port that is open and none that is not; another command is asked as it is.
func TestReadyForAPort(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{`[ -n "$(ss -Htuln sport = :PORT)" ]`, "ss -tuln | grep :PORT", "test PORT = open"} {
		s := newShop(t)
		if b, log := s.make(templatebuild.Recipe{Ready: strings.Replace(form, "PORT", port, 1)}); b.Status != templatebuild.Ready {
			t.Fatal(log)
		}
		for at, open := range map[string]bool{port: true, "1": false} {
			command := strings.ReplaceAll(s.commands[0].Argv[3], port, at)
			cmd := exec.CommandContext(t.Context(), "/bin/bash", "-c", command)
			cmd.Env = []string{"PATH=/nowhere"}
			if err := cmd.Run(); (err == nil) != (open && strings.Contains(form, "ss ")) {
				t.Errorf("%s: port %s, open %v: %v", command, at, open, err)
			}
		}
	}
}
