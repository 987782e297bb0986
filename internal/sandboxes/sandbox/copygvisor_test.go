package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/enginetest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/gvisor"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
)

// newRealStudio is over the engine that sandboxes run on, with the host's /usr as
// their programs.
func newRealStudio(t *testing.T) *studio {
	t.Helper()
	return newRealStudioOf(t, func(e engine.Engine) engine.Engine { return e })
}

// newRealStudioOf is newRealStudio with an engine that something stands around.
func newRealStudioOf(t *testing.T, around func(engine.Engine) engine.Engine) *studio {
	t.Helper()
	runsc, err := filepath.Abs("../../../bin/runsc")
	must(t, err)
	if _, err := os.Stat(runsc); err != nil {
		t.Fatal("runsc is not built: make bin/runsc")
	}
	if os.Geteuid() != 0 {
		t.Fatal("copies of sandboxes need root")
	}
	return newStudioWith(t, func(s *studio) {
		s.engine = around(gvisor.New(gvisor.Config{
			Runsc: runsc, Root: filepath.Join(s.dir, "runsc"), StateDir: filepath.Join(s.dir, "state"), CgroupParent: fmt.Sprintf("cofferdam-copy-%d", os.Getpid()), Stage: enginetest.StageArgv(t),
		}, s.keeper))
		root := filepath.Join(s.dir, "root")
		for _, dir := range []string{"etc", "usr", "tmp", "run", "dev", "proc", "sys", "var/tmp", "home/agent", "root"} {
			must(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
		}
		for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
			must(t, os.Symlink("usr/"+name, filepath.Join(root, name)))
		}
		must(t, os.Chmod(filepath.Join(s.dir, "agent"), 0o755))
		build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(s.dir, "agent", "cofferdam-guest"), "../../../cmd/cofferdam-guest")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		s.tpl = template.Template{
			Name: "plain", Root: engine.Root{Kind: engine.RootDir, Path: root}, User: "agent", Home: "/home/agent",
			Mounts: []engine.Mount{{Source: "/usr", Destination: "/usr", ReadOnly: true}}, Env: map[string]string{"PATH": "/usr/bin:/bin"},
		}
	})
}

// sh runs a shell's text and returns what it printed; it must succeed.
func (s *studio) sh(id, text string) string {
	s.t.Helper()
	c, err := s.Start(s.t.Context(), id, sandbox.Command{Argv: []string{"/bin/sh", "-c", text}, Dir: "/"})
	must(s.t, err)
	out, exit := s.await(id, c.ID, 0)
	if exit.Code != 0 {
		s.t.Fatalf("%s: %+v\n%s", text, exit, out)
	}
	return strings.TrimSpace(out)
}

// await reads a command's output from an offset on, to its end.
func (s *studio) await(id, command string, offset int64) (string, channel.Exit) {
	s.t.Helper()
	var out strings.Builder
	var exit channel.Exit
	s.watch(id, command, offset, func(kind channel.FrameType, payload []byte) bool {
		switch kind { //nolint:exhaustive // the others say nothing of this
		case channel.FrameStdout, channel.FrameStderr:
			out.Write(payload)
		case channel.FrameExit:
			must(s.t, channel.DecodeJSON(kind, payload, &exit))
			return false
		}
		return true
	})
	return out.String(), exit
}

// awaitText reads what a command prints until it is a text.
func (s *studio) awaitText(id, command, text string) {
	s.t.Helper()
	var seen string
	s.watch(id, command, 0, func(kind channel.FrameType, payload []byte) bool {
		if kind == channel.FrameExit {
			s.t.Fatalf("the program ended: %s\n%s", payload, seen)
		}
		if kind == channel.FrameStdout {
			seen += string(payload)
		}
		return seen != text
	})
}

// watch hands on a command's frames until that returns false.
func (s *studio) watch(id, command string, offset int64, each func(channel.FrameType, []byte) bool) {
	s.t.Helper()
	conn, err := s.Attach(s.t.Context(), id, command, offset)
	must(s.t, err)
	defer conn.Close()
	must(s.t, conn.SetDeadline(time.Now().Add(time.Minute)))
	frames := channel.NewReader(conn)
	for {
		kind, payload, err := frames.ReadFrame()
		if errors.Is(err, io.EOF) {
			s.t.Fatal("the output ends without an exit")
		}
		must(s.t, err)
		if !each(kind, payload) {
			return
		}
	}
}

const counter = `
import sys, time, os
secret = os.urandom(16).hex()
for n in range(10**6):
    print(secret, n, flush=True)
    time.sleep(0.02)
`

// TestRealCopies: processes go on in each copy from where they stood, files and
// packages are there and accounted for, and nothing that must differ is the same.
func TestRealCopies(t *testing.T) {
	s := newRealStudio(t)
	source := s.create(s.request(house)).Info()
	s.serve(source.ID)
	s.sh(source.ID, "mkdir -p /home/agent/"+dist+"; d=/home/agent/lib/python3.12/site-packages/requests-2.31.0.dist-info; mkdir -p $d; printf 'Metadata-Version: 2.1\\nName: requests\\nVersion: 2.31.0\\n' > $d/METADATA")
	s.sh(source.ID, "echo written > /home/agent/file; rm -f /etc/hostname.none; head -c 5000000 /dev/zero > /home/agent/zeros")
	work, err := s.Start(t.Context(), source.ID, sandbox.Command{Argv: []string{"/usr/bin/python3", "-c", counter}, Dir: "/"})
	must(t, err)
	line := func(id string, offset int64) (secret string, n int) {
		var seen string
		s.watch(id, work.ID, offset, func(kind channel.FrameType, payload []byte) bool {
			if kind == channel.FrameExit {
				t.Fatalf("the program ended in %s: %s", id, payload)
			}
			if kind == channel.FrameStdout {
				seen += string(payload)
			}
			return len(regexp.MustCompile(`(?m)^\w+ \d+\n`).FindAllString(seen, -1)) < 2
		})
		lines := strings.Split(strings.TrimSpace(seen), "\n")
		fields := strings.Fields(lines[len(lines)-2])
		n, err := strconv.Atoi(fields[1])
		must(t, err)
		return fields[0], n
	}
	secret, _ := line(source.ID, 0)
	began := time.Now()
	snap, err := s.Snapshot(t.Context(), source.ID, "base", engine.ContentsMemory)
	must(t, err)
	t.Logf("snapshot: %s, %d KiB", time.Since(began), snap.Bytes>>10)
	_, before := line(source.ID, 0)

	ids := []string{source.ID}
	for range 2 {
		began = time.Now()
		ids = append(ids, s.create(sandbox.Request{Snapshot: "base", User: "ann", Linger: true}).Info().ID)
		t.Logf("restore: %s", time.Since(began))
	}
	began = time.Now()
	copies, err := s.Fork(t.Context(), source.ID, 2, sandbox.Lifetime{})
	must(t, err)
	t.Logf("fork of two: %s", time.Since(began))
	for _, c := range copies {
		must(t, c.Err)
		ids = append(ids, c.Sandbox.Info().ID)
	}
	differ := map[string]map[string]string{}
	for _, id := range ids {
		if id != source.ID {
			again, n := line(id, 0)
			if again != secret || n < 0 {
				t.Errorf("the program in %s is another one: %s %d", id, again, n)
			}
			if got := s.records(id, audit.Restored); len(got) != 2 {
				t.Errorf("on record of %s: %+v", id, got)
			}
		}
		if got := s.sh(id, "cat /home/agent/file; stat -c %s /home/agent/zeros"); got != "written\n5000000" {
			t.Errorf("files of %s: %q", id, got)
		}
		for what, text := range map[string]string{
			"hostname": "uname -n", "machine id": "cat /etc/machine-id", "random": "python3 -c 'import os; print(os.urandom(16).hex())'",
			"uuid": "python3 -c 'import uuid; print(uuid.uuid4())'", "run": "echo $COFFERDAM_RUN", "boot": "cat /proc/sys/kernel/random/boot_id",
		} {
			if differ[what] == nil {
				differ[what] = map[string]string{}
			}
			got := s.sh(id, text)
			if other, same := differ[what][got]; same {
				t.Errorf("%s and %s have the same %s: %s", id, other, what, got)
			}
			differ[what][got] = id
		}
		now, err := strconv.ParseInt(s.sh(id, "date +%s"), 10, 64)
		must(t, err)
		if off := time.Since(time.Unix(now, 0)); off > 30*time.Second || off < -30*time.Second {
			t.Errorf("the clock of %s is off by %s", id, off)
		}
		if got := s.records(id, audit.Alarm); len(got) != 0 {
			t.Errorf("alarms in %s: %+v", id, got)
		}
	}
	_, after := line(source.ID, 0)
	if before > after {
		t.Errorf("the source's program went back from %d to %d", before, after)
	}
	s.sh(ids[1], "echo other > /home/agent/file")
	if got := s.sh(ids[2], "cat /home/agent/file"); got != "written" {
		t.Errorf("what one copy wrote is in the other: %q", got)
	}
	if left := s.left(); len(left) != 1 || left[0] != snap.ID {
		t.Errorf("left: %v", left)
	}
}

// TestRealCopiesOfFiles start like new sandboxes, over a restart of the daemon, too.
func TestRealCopiesOfFiles(t *testing.T) {
	s := newRealStudio(t)
	source := s.create(s.request(house)).Info().ID
	s.sh(source, "echo written > /home/agent/file; sleep 1000 >/dev/null 2>&1 & exit 0")
	snap, err := s.Snapshot(t.Context(), source, "", engine.ContentsFiles)
	must(t, err)
	must(t, s.Destroy(t.Context(), source))
	s.restart("sha256:template")
	id := s.create(sandbox.Request{Snapshot: snap.ID, Linger: true}).Info().ID
	if got := s.sh(id, "cat /home/agent/file; cat /proc/[0-9]*/comm | grep -c sleep; true"); got != "written\n0" {
		t.Errorf("the copy: %q", got)
	}
	flip := func(path string) {
		data, err := os.ReadFile(path)
		must(t, err)
		data[len(data)/2] ^= 1
		must(t, os.WriteFile(path, data, 0o600))
	}
	images, err := filepath.Glob(filepath.Join(s.dir, "snapshots", snap.ID, "image", "*"))
	must(t, err)
	for _, path := range images {
		flip(path)
		if _, err := s.Create(context.WithoutCancel(t.Context()), sandbox.Request{Snapshot: snap.ID}); !errors.Is(err, fault.ErrConflict) {
			t.Errorf("with a flipped byte in %s: %v", filepath.Base(path), err)
		}
		flip(path)
	}
	s.create(sandbox.Request{Snapshot: snap.ID})
}
