package mounts

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process/processtest"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// TestAProgramThatHangsIsKilled: neither a mkfs.ext4 that hangs, nor a program of its own that
// keeps its output, holds up who makes a disk beyond its time, or once nobody waits any more.
// What the latter started is left, and goes with the namespace that it is in.
func TestAProgramThatHangsIsKilled(t *testing.T) {
	t.Parallel()
	if !processtest.Inside(t) {
		return
	}
	dir := t.TempDir()
	began := filepath.Join(dir, "began")
	for _, script := range []string{"exec sleep 1000", "sleep 1000 & wait"} {
		program := filepath.Join(dir, "mkfs.ext4")
		if err := os.WriteFile(program, []byte("#!/bin/sh\n: > "+began+"\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		safego.Go(func() {
			for _, err := os.Stat(began); err != nil; _, err = os.Stat(began) {
				time.Sleep(time.Millisecond)
			}
			cancel()
		})
		if err := format(ctx, program, "x", time.Hour); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, given up: %v", script, err)
		}
		if err := os.Remove(began); err != nil {
			t.Errorf("INCONCLUSIVE: it did not begin: %v", err)
		}
		if err := format(t.Context(), program, "x", time.Second); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, fault.ErrUnavailable) {
			t.Errorf("%s: %v", script, err)
		}
	}
}

// TestAProgramWhoseOutputIsHeldHasEndedWell: on a host that is short of time the output of a program is read
// to its end later than the program ends, which is no reason to make no disk.
func TestAProgramWhoseOutputIsHeldHasEndedWell(t *testing.T) {
	t.Parallel()
	if !processtest.Inside(t) {
		return
	}
	for code, wants := range map[string]bool{"0": true, "1": false} {
		program := filepath.Join(t.TempDir(), "mkfs.ext4")
		if err := os.WriteFile(program, []byte("#!/bin/sh\nsleep 1000 &\nexit "+code+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := format(t.Context(), program, "x", time.Hour); (err == nil) != wants {
			t.Errorf("a program that ended with %s: %v", code, err)
		}
	}
}

// TestADiskIsMadeOrItIsSaidWhyNot has the real program make one, and refuse another.
func TestADiskIsMadeOrItIsSaidWhyNot(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "disk")
	if err := MakeDisk(t.Context(), file, 16<<20); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil || len(data) != 16<<20 || data[0x438] != 0x53 || data[0x439] != 0xef {
		t.Errorf("%d bytes, which are no ext4: %v", len(data), err)
	}
	if err := MakeDisk(t.Context(), file, 16<<20); !errors.Is(err, os.ErrExist) {
		t.Errorf("a disk in another's place: %v", err)
	}
	if err := MakeDisk(t.Context(), file+"2", 4096); err == nil || !strings.Contains(err.Error(), "mkfs.ext4") || errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("a disk that is too small: %v", err)
	}
}
