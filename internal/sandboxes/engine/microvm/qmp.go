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
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// qmp speaks with QEMU: an object of JSON a line, one command at a time; what QEMU tells
// unasked comes in between, and is passed over.
type qmp struct {
	conn *net.UnixConn
	from *bufio.Reader
}

var _ controls = qemuControls{}

// mostQMP bounds a line of QEMU's.
const mostQMP = 1 << 20

// qmpAnswer is a line of QEMU's.
type qmpAnswer struct {
	Greeting json.RawMessage `json:"QMP"`
	Event    string          `json:"event"`
	Return   json.RawMessage `json:"return"`
	Error    *struct {
		Desc string `json:"desc"`
	} `json:"error"`
}

// dialQMP connects and agrees. The socket's file is there once QEMU has read its arguments.
func dialQMP(ctx context.Context, socket string) (*qmp, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	q := &qmp{conn: conn.(*net.UnixConn), from: bufio.NewReaderSize(conn, 4096)}
	err = q.bounded(ctx, func() error {
		hello, err := q.readAnswer()
		if err == nil && hello.Greeting == nil {
			err = errors.New("it does not greet")
		}
		return err
	})
	if err == nil {
		err = q.runCommand(ctx, "qmp_capabilities", nil, nil)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("speak with QEMU: %w", err), conn.Close())
	}
	return q, nil
}

func (q *qmp) Close() error { return q.conn.Close() }

// bounded has what is read and written within it end with the context, or after ask.
func (q *qmp) bounded(ctx context.Context, talk func() error) error {
	ctx, cancel := context.WithTimeout(ctx, ask)
	defer cancel()
	deadline, _ := ctx.Deadline()
	if err := q.conn.SetDeadline(deadline); err != nil {
		return err
	}
	stop := safego.When(ctx, func() { _ = q.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	err := talk()
	if err != nil && ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err)
	}
	return err
}

// readAnswer reads a line.
func (q *qmp) readAnswer() (qmpAnswer, error) {
	var a qmpAnswer
	var line []byte
	for {
		part, more, err := q.from.ReadLine()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return a, err
		}
		if line = append(line, part...); len(line) > mostQMP {
			return a, fmt.Errorf("a line of more than %d bytes", mostQMP)
		}
		if !more {
			return a, json.Unmarshal(line, &a)
		}
	}
}

// runCommand runs a command, with a file to go along, and returns what it returned to into.
func (q *qmp) runCommand(ctx context.Context, command string, arguments any, file *os.File, into ...any) error {
	line, err := json.Marshal(map[string]any{"execute": command})
	if arguments != nil {
		line, err = json.Marshal(map[string]any{"execute": command, "arguments": arguments})
	}
	if err != nil {
		return err
	}
	var rights []byte
	if file != nil {
		rights = unix.UnixRights(int(file.Fd()))
	}
	var a qmpAnswer
	err = q.bounded(ctx, func() error {
		if _, _, err := q.conn.WriteMsgUnix(append(line, '\n'), rights, nil); err != nil {
			return err
		}
		for {
			if a, err = q.readAnswer(); err != nil || a.Event == "" {
				return err
			}
		}
	})
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", command, err)
	case a.Error != nil:
		return fault.New(fault.ErrUnavailable, "QEMU refuses %s: %.300s", command, a.Error.Desc)
	case a.Return == nil:
		return fmt.Errorf("%s: QEMU says nothing that is an answer", command)
	}
	for _, v := range into {
		if err := json.Unmarshal(a.Return, v); err != nil {
			return fmt.Errorf("%s: %w", command, err)
		}
	}
	return nil
}

func (q *qmp) Stop(ctx context.Context) error     { return q.runCommand(ctx, "stop", nil, nil) }
func (q *qmp) Continue(ctx context.Context) error { return q.runCommand(ctx, "cont", nil, nil) }

// KeepSharedOut has a save or load that follows leave out memory that is a file.
func (q *qmp) KeepSharedOut(ctx context.Context) error {
	type capability struct {
		Name string `json:"capability"`
		On   bool   `json:"state"`
	}
	return q.runCommand(ctx, "migrate-set-capabilities", map[string]any{"capabilities": []capability{{"x-ignore-shared", true}}}, nil)
}

// streamName is what QEMU calls the file that it is handed.
const streamName = "image"

// Save writes the machine at once: it stands still, so that nothing has to be sent twice.
func (q *qmp) Save(ctx context.Context, to *os.File) error {
	err := q.runCommand(ctx, "migrate-set-parameters", map[string]any{"max-bandwidth": int64(1) << 40}, nil)
	if err == nil {
		err = q.runCommand(ctx, "getfd", map[string]any{"fdname": streamName}, to)
	}
	if err == nil {
		err = q.runCommand(ctx, "migrate", map[string]any{"uri": "fd:" + streamName}, nil)
	}
	if err != nil {
		return err
	}
	return q.awaitMoved(ctx)
}

// Load reads the machine. It stands still, or runs, as it did when it was written.
func (q *qmp) Load(ctx context.Context, from *os.File) error {
	err := q.runCommand(ctx, "getfd", map[string]any{"fdname": streamName}, from)
	if err == nil {
		err = q.runCommand(ctx, "migrate-incoming", map[string]any{"uri": "fd:" + streamName}, nil)
	}
	if err != nil {
		return err
	}
	return q.awaitMoved(ctx)
}

// lookAgain is how often QEMU is asked whether it is done.
const lookAgain = 5 * time.Millisecond

// awaitMoved waits for the end of a save or a load.
func (q *qmp) awaitMoved(ctx context.Context) error {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		var now struct {
			Status string `json:"status"`
			Why    string `json:"error-desc"`
		}
		if err := q.runCommand(ctx, "query-migrate", nil, nil, &now); err != nil {
			return err
		}
		switch now.Status {
		case "completed":
			return nil
		case "failed", "cancelled", "cancelling":
			return fault.New(fault.ErrUnavailable, "QEMU could not move the machine (%s): %.300s", now.Status, now.Why)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
