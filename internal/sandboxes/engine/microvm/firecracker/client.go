// Package firecracker speaks with the monitor Firecracker: by its API, a few calls of JSON
// over HTTP on a Unix socket, in the order that it wants them in.
//
// The monitor refuses a call with a sentence of its own (Fault). An answer that is neither that nor
// a success is none of Firecracker's. Paths are those that the monitor sees.
package firecracker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// mostAnswer bounds the body of an answer, and mostHeader its head.
const (
	mostAnswer = 64 << 10
	mostHeader = 16 << 10
)

// Fault is a call that the monitor refused.
type Fault struct {
	Call    string // the method and the path
	Status  int
	Message string // its own
}

func (f *Fault) Error() string {
	return fmt.Sprintf("the monitor refuses %s: %.300s", f.Call, f.Message)
}

// Client speaks with one monitor. For one caller at a time.
type Client struct {
	http *http.Client
	idle func()
}

// Dial makes a client of a monitor's socket, and one connection, so that a monitor that does
// not listen yet is an error.
func Dial(ctx context.Context, socket string) (*Client, error) {
	first, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		DisableCompression: true, MaxIdleConnsPerHost: 1, MaxResponseHeaderBytes: mostHeader,
		DialContext: safego.ShieldDial(func(ctx context.Context, _, _ string) (net.Conn, error) {
			if conn := first; conn != nil {
				first = nil
				return conn, nil
			}
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}),
	}
	never := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{http: &http.Client{Transport: transport, CheckRedirect: never}, idle: transport.CloseIdleConnections}, nil
}

// Close closes the connection.
func (c *Client) Close() error {
	c.idle()
	return nil
}

// putChange makes a call that changes something.
func (c *Client) putChange(ctx context.Context, path string, body any) error {
	return c.callAPI(ctx, http.MethodPut, path, body, nil)
}

// callAPI makes a call; into takes the answer of one that asks.
func (c *Client) callAPI(ctx context.Context, method, path string, body, into any) error {
	name := method + " " + path
	status, answer, err := c.exchange(ctx, method, path, body)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	case status == http.StatusNoContent && into == nil:
		return nil
	case status == http.StatusOK && into != nil:
		if err := json.Unmarshal(answer, into); err != nil {
			return fmt.Errorf("%s: the monitor's answer can't be read: %w", name, err)
		}
		return nil
	}
	var refused struct {
		Message string `json:"fault_message"`
	}
	if status < http.StatusBadRequest || json.Unmarshal(answer, &refused) != nil || refused.Message == "" {
		return fault.New(fault.ErrUnavailable, "%s: the answer %d, %.100q, is none of Firecracker's", name, status, answer)
	}
	return fault.Wrap(fault.ErrUnavailable, &Fault{Call: name, Status: status, Message: refused.Message}, "Firecracker did not do what it was told")
}

func (c *Client) exchange(ctx context.Context, method, path string, body any) (status int, answer []byte, err error) {
	var from io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		from = bytes.NewReader(data) // of a known length: the monitor knows no other
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, from)
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			err = errors.Join(ctx.Err(), err)
		}
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(response.Body, mostAnswer+1))
	if err == nil && len(answer) > mostAnswer {
		err = fmt.Errorf("the answer has more than %d bytes", mostAnswer)
	}
	return response.StatusCode, answer, err
}
