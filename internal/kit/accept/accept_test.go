package accept_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/accept"
)

// failing is a listener that fails so often before each connection.
type failing struct {
	with   error
	times  int
	failed int
	closed chan struct{}
}

func newFailing(with error, times int) *failing {
	return &failing{with: with, times: times, closed: make(chan struct{})}
}

func (f *failing) Accept() (net.Conn, error) {
	select {
	case <-f.closed:
		return nil, net.ErrClosed
	default:
	}
	if f.failed < f.times {
		f.failed++
		return nil, &net.OpError{Op: "accept", Net: "unix", Err: os.NewSyscallError("accept4", f.with)}
	}
	f.failed = 0
	ours, theirs := net.Pipe()
	_ = theirs.Close()
	return ours, nil
}

func (f *failing) Close() error {
	close(f.closed)
	return nil
}

func (f *failing) Addr() net.Addr { return &net.UnixAddr{Name: "/uplink", Net: "unix"} }

// TestWhatEndsByItselfIsWaitedFor: for each such failure, with one line when it begins and one when
// it is over, and pauses that grow so far and no further.
func TestWhatEndsByItselfIsWaitedFor(t *testing.T) {
	for _, with := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		t.Run(with.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				l := accept.Patient(newFailing(with, 20), slog.New(slog.NewTextHandler(&log, nil)))
				began := time.Now()
				conn, err := l.Accept()
				if err != nil {
					t.Fatal(err)
				}
				_ = conn.Close()
				if took := time.Since(began); took < 10*time.Second || took > 15*time.Second {
					t.Errorf("twenty pauses took %s", took)
				}
				said := log.String()
				if strings.Count(said, "\n") != 2 || !strings.Contains(said, "could not be accepted") || !strings.Contains(said, "accepted again") || !strings.Contains(said, "tries=20") {
					t.Errorf("the log says\n%s", said)
				}
			})
		})
	}
}

// TestWhatDoesNotPassEnds: and a listener that is closed while it waits.
func TestWhatDoesNotPassEnds(t *testing.T) {
	if _, err := accept.Patient(newFailing(syscall.EBADF, 1), nil).Accept(); !errors.Is(err, syscall.EBADF) {
		t.Errorf("of no use: %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		l := accept.Patient(newFailing(syscall.EMFILE, 1<<30), nil)
		over := make(chan error, 1)
		go func() {
			_, err := l.Accept()
			over <- err
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		select {
		case err := <-over:
			t.Errorf("it has ended: %v", err)
		default:
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-over; !errors.Is(err, net.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}
