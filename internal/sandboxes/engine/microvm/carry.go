package microvm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/accept"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel/resumable"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// A carrier is the process whose stdin and stdout are the channel, where the monitor's are
// not: it connects to the machine's socket, and carries what either side says. It is shut in
// with the monitor, as the same user, and is the first process of their process namespace, so
// that the kernel ends the monitor with it. It ends with the monitor itself.
const (
	carrierName = "carrier"

	controlFD = 3 // a socket on which stages connect, which the monitor does not have
	aliveFD   = 4 // a pipe of which only the monitor has the other end

	connectWait  = 10 * time.Second
	connectAgain = 5 * time.Millisecond // while nobody waits at the other end
)

// dialControl connects to a carrier's control by a name that is short enough.
func (c carrier) dialControl(ctx context.Context) (net.Conn, error) {
	dir, err := os.Open(c.b.dir)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join("/proc/self/fd", strconv.Itoa(int(dir.Fd())), carrierName))
}

// runCarrier runs a carrier. Its arguments are the machine's socket and the port.
func runCarrier(args []string) error {
	if len(args) != 2 {
		return fault.Invalid("a carrier takes a socket and a port, not %q", args)
	}
	channel, err := net.FileConn(os.Stdin)
	if err != nil {
		return err
	}
	defer channel.Close()
	keeper, ok := channel.(*net.UnixConn)
	if !ok {
		return fault.Invalid("a carrier's stdin is no socket")
	}
	control, err := net.FileListener(os.NewFile(controlFD, "control"))
	if err != nil {
		return err
	}
	defer control.Close()
	end := resumable.New()
	over := make(chan error, 4)
	safego.Go(func() { over <- end.Feed(keeper) })
	safego.Go(func() { over <- end.Deliver(keeper) })
	safego.Go(func() {
		_, err := io.Copy(io.Discard, os.NewFile(aliveFD, "monitor"))
		over <- errors.Join(io.EOF, err)
	})
	on := make(chan struct{}, 1)
	safego.Go(func() { over <- attend(control, end, on) })
	safego.Go(func() { over <- stayConnected(end, on, args[0], args[1]) })
	err = <-over
	if errors.Is(err, io.EOF) { // the keeper, or the monitor, is gone
		return nil
	}
	return fmt.Errorf("the sandbox's channel: %w", err)
}

// stayConnected connects, once that is wanted, and again whenever the connection is lost.
func stayConnected(end *resumable.End, on <-chan struct{}, socket, port string) error {
	<-on
	wait := time.NewTicker(connectAgain)
	defer wait.Stop()
	for {
		if err := end.Unattached(); err != nil {
			return err
		}
		conn, err := connectPort(socket, port)
		if err == nil {
			err = end.Attach(conn)
		}
		if errors.Is(err, resumable.ErrBroken) {
			return err
		}
		if err != nil { // the machine is not that far, or there is none any more
			<-wait.C
		}
	}
}

// connectPort asks for the port on which the agent waits.
func connectPort(socket, port string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), connectWait)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline()
	line := ""
	err = errors.Join(conn.SetDeadline(deadline), askFor(conn, port, &line))
	if err == nil && !strings.HasPrefix(line, "OK ") {
		err = fmt.Errorf("the monitor answers %.40q", line)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, conn.SetDeadline(time.Time{})
}

// mostLine bounds the monitor's answer.
const mostLine = 64

// askFor reads the answer byte by byte: what comes after it is the agent's.
func askFor(conn net.Conn, port string, line *string) error {
	if _, err := fmt.Fprintf(conn, "CONNECT %s\n", port); err != nil {
		return err
	}
	var one [1]byte
	for len(*line) < mostLine {
		if _, err := io.ReadFull(conn, one[:]); err != nil {
			return err
		}
		if one[0] == '\n' {
			return nil
		}
		*line += string(one[:])
	}
	return errors.New("the monitor's answer has no end")
}

// attend does what stages say, one after the other.
func attend(control net.Listener, end *resumable.End, on chan<- struct{}) error {
	control = accept.Patient(control, nil)
	for {
		conn, err := control.Accept()
		if err != nil {
			return err
		}
		safego.Go(func() { // a hold may wait, and must not keep out who takes it back
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(drainWait))
			var call carrierCall
			if json.NewDecoder(bufio.NewReader(io.LimitReader(conn, mostCarried))).Decode(&call) == nil {
				_ = json.NewEncoder(conn).Encode(doCarrierCall(call, end, on)) // who asked is gone
			}
		})
	}
}

// doCarrierCall does what a stage says.
func doCarrierCall(call carrierCall, end *resumable.End, on chan<- struct{}) carrierAnswer {
	switch {
	case call.Do == carryOn:
		end.Resume()
		select {
		case on <- struct{}{}:
		default: // it is on
		}
		return carrierAnswer{}
	case call.Do == carryHold:
		state := end.Hold()
		return carrierAnswer{State: &state}
	case call.Do == carryFrom && call.State != nil:
		if err := end.Restore(*call.State); err != nil {
			return carrierAnswer{Error: "it is somewhere already: " + err.Error()}
		}
		return carrierAnswer{}
	}
	return carrierAnswer{Error: "it does not know that"}
}
