package gvisor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/enginetest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/image"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// modules are what a python that has done something has loaded.
const modules = "asyncio, ssl, sqlite3, json, email, http.client, urllib.request, xml.etree.ElementTree, decimal, csv, " +
	"logging, unittest, argparse, subprocess, threading, multiprocessing, tempfile, zipfile, tarfile, hashlib"

// TestSpeed prints how long snapshots and restores take, where
// COFFERDAM_SPEED is a number of rounds, on the root image that
// COFFERDAM_SPEED_ROOT names, or on the tests' own. It judges nothing: machines
// differ.
func TestSpeed(t *testing.T) {
	var rounds int
	if _, err := fmt.Sscan(os.Getenv("COFFERDAM_SPEED"), &rounds); err != nil || rounds < 1 {
		t.Skip("COFFERDAM_SPEED is not a number of rounds")
	}
	subject := newSite(t).subject(t, engine.RootImage)
	if path := os.Getenv("COFFERDAM_SPEED_ROOT"); path != "" {
		own := subject.Spec
		subject.Spec = func(id string) engine.Spec {
			spec := own(id)
			spec.Root.Path, spec.Mounts = path, spec.Mounts[1:] // it has its own /usr
			return spec
		}
	}
	for name, script := range map[string]string{
		"idle":   "",
		"python": "import sys, " + modules + "\nprint('ready', flush=True)\nfor line in sys.stdin: print(len(sys.modules), flush=True)",
	} {
		t.Run(name, func(t *testing.T) { speed(t, subject, script, rounds) })
	}
}

func speed(t *testing.T, s *enginetest.Subject, script string, rounds int) {
	t.Helper()
	spec := s.Spec("speed")
	inst, err := s.Engine.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer destroy(t, inst)
	configure(t, s, spec.ID)
	if script != "" {
		run(t, s, spec.ID, channel.Exec{ID: "py", Argv: []string{"python3", "-c", script}, Stdin: true}, "ready")
	}
	var creates, snapshots, first, answers, destroys, cpu []time.Duration
	var size int64
	for i := range rounds {
		creates = append(creates, timed(t, func() error { return createAndAsk(t, s, fmt.Sprintf("fresh%d", i)) }))
		dir := filepath.Join(t.TempDir(), "snapshot")
		snapshots = append(snapshots, timed(t, func() error {
			return inst.(engine.Snapshotter).Snapshot(t.Context(), dir, engine.ContentsMemory)
		}))
		if size, err = image.Size(dir); err != nil {
			t.Fatal(err)
		}
		for j := range 3 { // as a fork into three
			spec := s.Spec(fmt.Sprintf("copy%d-%d", i, j))
			var copied engine.Instance
			took := timed(t, func() (err error) {
				copied, err = s.Engine.(engine.Restorer).Restore(t.Context(), spec, dir)
				return err
			})
			first = append(first, took)
			answers = append(answers, took+timed(t, func() error {
				configure(t, s, spec.ID)
				run(t, s, spec.ID, channel.Exec{ID: "t", Argv: []string{"/bin/echo", "here"}}, "here")
				return nil
			}))
			if stats, err := copied.Stats(t.Context()); err == nil {
				cpu = append(cpu, time.Duration(stats.CPUNanos))
			}
			destroys = append(destroys, timed(t, func() error { return copied.Destroy(t.Context()) }))
		}
	}
	t.Logf("image %.1f MB; snapshot %s; restore %s; to the first command's output %s, with %s of processor time; a fresh one's, and its end %s; destroy %s",
		float64(size)/1e6, spread(snapshots), spread(first), spread(answers), spread(cpu), spread(creates), spread(destroys))
}

// createAndAsk creates a sandbox and asks it something, which a restore is to be compared with.
func createAndAsk(t *testing.T, s *enginetest.Subject, id string) error {
	t.Helper()
	inst, err := s.Engine.Create(t.Context(), s.Spec(id))
	if err != nil {
		return err
	}
	configure(t, s, id)
	run(t, s, id, channel.Exec{ID: "t", Argv: []string{"/bin/echo", "here"}}, "here")
	return inst.Destroy(t.Context())
}

func timed(t *testing.T, do func() error) time.Duration {
	t.Helper()
	began := time.Now()
	if err := do(); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}

func spread(all []time.Duration) string {
	if len(all) == 0 {
		return "unknown"
	}
	slices.Sort(all)
	return fmt.Sprintf("%v (%v-%v)", all[len(all)/2].Round(time.Millisecond), all[0].Round(time.Millisecond), all[len(all)-1].Round(time.Millisecond))
}

func destroy(t *testing.T, inst engine.Instance) {
	t.Helper()
	if err := inst.Destroy(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

func configure(t *testing.T, s *enginetest.Subject, id string) {
	t.Helper()
	_, err := s.Keeper.Call(t.Context(), id, channel.Call{Kind: channel.CallConfigure, Configure: &channel.Configure{
		Hostname: "sandbox", User: channel.User{Name: "agent", UID: 1000, GID: 1000, Home: "/home/agent"},
		Env: map[string]string{"PATH": "/bin:/usr/bin"}, Now: time.Now().UnixNano(), Seed: []byte("0123456789abcdef"),
		CAPEM: []byte("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"),
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// run starts a command and reads its output until a word.
func run(t *testing.T, s *enginetest.Subject, id string, exec channel.Exec, until string) {
	t.Helper()
	if err := s.Keeper.Exec(t.Context(), id, exec, keeper.ExecOptions{}); err != nil {
		t.Fatal(err)
	}
	conn, err := s.Keeper.Attach(t.Context(), id, exec.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var all strings.Builder
	for in := channel.NewReader(conn); !strings.Contains(all.String(), until); {
		kind, payload, err := in.ReadFrame()
		if err != nil || kind == channel.FrameExit {
			t.Fatal(errors.Join(err, fmt.Errorf("it ended: %s %s", all.String(), payload)))
		}
		all.Write(payload)
	}
}
