package guest

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// pipes is a channel that comes as two pipes: an engine behind a daemon of its own gets no
// socket into a container, and has its stdin and stdout carried.
type pipes struct {
	in, out *os.File
}

var _ io.ReadWriteCloser = pipes{}

func (p pipes) Read(b []byte) (int, error)  { return p.in.Read(b) }
func (p pipes) Write(b []byte) (int, error) { return p.out.Write(b) }

// Close ends both directions; who waits in either returns.
func (p pipes) Close() error { return errors.Join(p.in.Close(), p.out.Close()) }

// takePipes makes a channel of copies of stdin and stdout, if both are pipes.
func takePipes() (io.ReadWriteCloser, error) {
	in, err := takePipe(stdin, "stdin")
	if err != nil {
		return nil, err
	}
	out, err := takePipe(stdout, "stdout")
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return pipes{in: in, out: out}, nil
}

func takePipe(fd int, name string) (*os.File, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("take the channel from %s: %w", name, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFIFO {
		return nil, fmt.Errorf("%s is neither a socket nor a pipe, so it is not the channel", name)
	}
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("take the channel from %s: %w", name, err)
	}
	// So that a Close ends a Read that waits.
	if err := unix.SetNonblock(own, true); err != nil {
		return nil, errors.Join(err, unix.Close(own))
	}
	return os.NewFile(uintptr(own), "channel "+name), nil
}
