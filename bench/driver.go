package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
)

// driverProgram is embedded, which takes a package-level variable.
//
//go:embed driver.py
var driverProgram string

// driver is a Python program in a sandbox that times what it is asked to do:
// figures of clients inside are free of what starting them costs.
type driver struct {
	attachment *client.Attachment
	lines      *bufio.Scanner
	pipe       *io.PipeReader
}

// ask is one request of a driver; answer is what it says.
type ask struct {
	Verb    string            `json:"verb"`
	Argv    []string          `json:"argv,omitempty"`
	Many    [][]string        `json:"many,omitempty"` // argvs to run at once
	Host    string            `json:"host,omitempty"`
	Path    string            `json:"path,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Port    int               `json:"port,omitempty"`

	Connections int `json:"connections,omitempty"` // of the asker alone, as is Count
	Count       int `json:"count,omitempty"`       // requests on each of them
}

type answer struct {
	Seconds float64 `json:"seconds"`
	Code    int     `json:"code"`
	Text    string  `json:"text"`
	Bytes   int64   `json:"bytes"`
	Samples sample  `json:"samples"` // ms
}

func (a answer) took() time.Duration { return time.Duration(a.Seconds * float64(time.Second)) }

func (b *bench) startDriver(ctx context.Context, sandbox string) (*driver, error) {
	return b.startProgram(ctx, sandbox, "python3", "-c", driverProgram)
}

// startProgram starts a program in a sandbox that is asked as a driver is.
func (b *bench) startProgram(ctx context.Context, sandbox string, argv ...string) (*driver, error) {
	cmd, err := b.daemon.client.StartCommand(ctx, sandbox, api.StartCommand{Argv: argv, Stdin: true})
	if err != nil {
		return nil, err
	}
	att, err := b.daemon.client.Attach(ctx, sandbox, cmd.ID, 0)
	if err != nil {
		return nil, err
	}
	out, in := io.Pipe()
	d := &driver{attachment: att, lines: bufio.NewScanner(out), pipe: out}
	d.lines.Buffer(nil, 1<<20)
	go func() { in.CloseWithError(pour(att, in)) }()
	return d, nil
}

// pour copies what the driver prints; its complaints become the error.
func pour(att *client.Attachment, w io.Writer) error {
	var complaints []byte
	for event, err := range att.Events() {
		switch {
		case err != nil:
			return err
		case event.Exit != nil:
			return fmt.Errorf("the driver ended with %d: %s", event.Exit.Code, complaints)
		case event.Stderr != nil:
			complaints = append(complaints, event.Stderr...)
		}
		if _, err := w.Write(event.Stdout); err != nil {
			return err
		}
	}
	return io.ErrUnexpectedEOF
}

// do asks and waits for the answer; what did not succeed is an error.
func (d *driver) do(a ask) (answer, error) {
	line, err := json.Marshal(a)
	if err != nil {
		return answer{}, err
	}
	if _, err := d.attachment.Write(append(line, '\n')); err != nil {
		return answer{}, err
	}
	if !d.lines.Scan() {
		return answer{}, errors.Join(errors.New("the driver says nothing more"), d.lines.Err())
	}
	var got answer
	if err := json.Unmarshal(d.lines.Bytes(), &got); err != nil {
		return got, fmt.Errorf("the driver said %q: %w", d.lines.Text(), err)
	}
	if got.Code != 0 {
		return got, fmt.Errorf("%s %v %s: ended with %d: %s", a.Verb, a.Argv, a.Path, got.Code, got.Text)
	}
	return got, nil
}

func (d *driver) close() {
	_ = d.pipe.Close()
	_ = d.attachment.Close() // its sandbox is destroyed next
}
