package fake_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/enginetest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// TestAKeeperOutlivesTheThreadThatStartedIt: engines end threads of the tests' process, such as one that has taken another
// user, and that may be the one on which the keeper was started.
func TestAKeeperOutlivesTheThreadThatStartedIt(t *testing.T) {
	dir, err := os.MkdirTemp("", "fake") //nolint:usetesting // A socket's path must be short.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	var k *keeper.Client
	gone := onThreadThatEnds(func() { k = enginetest.StartKeeper(t, filepath.Join(dir, "keeper.sock")) })
	if k == nil {
		t.Fatal("no keeper was started")
	}
	for !gone() {
		runtime.Gosched()
	}
	if err := k.Ping(t.Context()); err != nil {
		t.Errorf("after the end of the thread on which it was started: %v", err)
	}
}

// onThreadThatEnds does something on a thread that ends with it. The function it returns tells whether the thread has.
func onThreadThatEnds(do func()) (gone func() bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		thread := unix.Gettid()
		if thread == os.Getpid() { // the first one stays; while it is taken another is found
			gone = onThreadThatEnds(do)
			runtime.UnlockOSThread()
			return
		}
		gone = func() bool {
			_, err := os.Stat(filepath.Join("/proc/self/task", strconv.Itoa(thread)))
			return errors.Is(err, fs.ErrNotExist)
		}
		do()
	}()
	<-done
	return gone
}
