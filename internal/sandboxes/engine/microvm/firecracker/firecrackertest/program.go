package firecrackertest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// DeviceVariable names where the program looks for the hardware, the socket of a Hardware; else
// that is where Linux has KVM.
const DeviceVariable = "FIRECRACKERTEST_DEVICE"

// Unfiltered is the id of a monitor that runs without a filter of system calls, as one that is
// no release does.
const Unfiltered = "unfiltered"

// Is tells whether a program's arguments are those of a monitor.
func Is(args []string) bool {
	return len(args) > 1 && (args[1] == "--version" || args[1] == "--api-sock")
}

// Program is the whole of a monitor, as a process; its guest is one of a Hardware. It returns
// its exit code.
func Program(args []string) int {
	if args[1] == "--version" {
		fmt.Printf("%s\n\nSupported snapshot data format versions: v1\n\n", Version)
		return 0
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	socket, id := flags.String("api-sock", "", ""), flags.String("id", "", "")
	if flags.Parse(args[1:]) != nil || *socket == "" || *id == "" {
		return 152
	}
	if *id == Unfiltered {
		fmt.Fprintln(os.Stderr, "there is no filter of system calls")
	} else if err := filter(); err != nil {
		fmt.Fprintln(os.Stderr, "the filter of system calls:", err)
		return 148
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", *socket)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	died := make(chan struct{})
	server := &http.Server{Handler: &Monitor{Guest: &remote{id: *id, died: died}}} //nolint:gosec // of one client, the test's own
	safego.Go(func() { _ = server.Serve(listener) })
	<-died
	fmt.Fprintln(os.Stderr, DiesSaying)
	return 1
}

// filter puts a filter of system calls on that forbids none.
func filter() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	allow := []unix.SockFilter{{Code: unix.BPF_RET, K: unix.SECCOMP_RET_ALLOW}}
	program := unix.SockFprog{Len: 1, Filter: &allow[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program))) //nolint:gosec // the call takes a pointer
	if errno != 0 {
		return errno
	}
	return nil
}

// order is what a Hardware is asked, a line of JSON; it answers with another.
type order struct {
	Do   string `json:"do"`
	ID   string `json:"id"`
	Word string `json:"word,omitempty"`
	Port uint32 `json:"port,omitempty"`
}

type outcome struct {
	Error string `json:"error,omitempty"`
	Word  string `json:"word,omitempty"`
}

// remote is a guest of a Hardware.
type remote struct {
	id   string
	died chan struct{}
}

var _ Guest = (*remote)(nil)

func (r *remote) Start() error { return r.keepLiving(order{Do: "start", ID: r.id}) }
func (r *remote) Load(word string) error {
	return r.keepLiving(order{Do: "load", ID: r.id, Word: word})
}

// keepLiving has the guest be, for as long as the connection is.
func (r *remote) keepLiving(o order) error {
	conn, _, err := askHardware(o)
	if err != nil {
		return err
	}
	safego.Go(func() {
		_, _ = io.Copy(io.Discard, conn)
		close(r.died)
	})
	return nil
}

func (r *remote) Pause() error  { return r.orderOnce(order{Do: "pause", ID: r.id}) }
func (r *remote) Resume() error { return r.orderOnce(order{Do: "resume", ID: r.id}) }

func (r *remote) orderOnce(o order) error {
	conn, _, err := askHardware(o)
	if err == nil {
		err = conn.Close()
	}
	return err
}

func (r *remote) Save() (string, error) {
	conn, found, err := askHardware(order{Do: "save", ID: r.id})
	if err == nil {
		err = conn.Close()
	}
	return found.Word, err
}

func (r *remote) Connect(port uint32) (net.Conn, error) {
	conn, _, err := askHardware(order{Do: "connect", ID: r.id, Port: port})
	return conn, err
}

// askHardware asks the hardware something. The connection is the caller's.
func askHardware(o order) (net.Conn, outcome, error) {
	var found outcome
	conn, err := (&net.Dialer{}).DialContext(context.Background(), "unix", cmp.Or(os.Getenv(DeviceVariable), "/dev/kvm"))
	if err != nil {
		return nil, found, err
	}
	err = json.NewEncoder(conn).Encode(o)
	var line []byte
	for one := [1]byte{}; err == nil && one[0] != '\n'; line = append(line, one[0]) {
		_, err = conn.Read(one[:])
	}
	if err == nil {
		err = json.Unmarshal(line, &found)
	}
	if err == nil && found.Error != "" {
		err = errors.New(found.Error)
	}
	if err != nil {
		return nil, found, errors.Join(err, conn.Close())
	}
	return conn, found, nil
}
