package dialer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// ErrGone is in the error of a Client whose dialer went away.
var ErrGone = errors.New("the dialer went away")

// Client is the boxed process's end. Safe for concurrent use. When the dialer goes away
// every call fails; there is no second one.
type Client struct {
	conn   *net.UnixConn
	done   chan struct{}     // closed when the dialer is gone
	shares *fairqueue.Shares // of the questions under way, by sandboxes

	mu      sync.Mutex // guards the rest
	next    uint64
	waiting map[uint64]chan<- reply // with room for one
}

// reply is an answer, and the socket that came with it.
type reply struct {
	dialAnswer

	socket *os.File
}

func (r reply) dropSocket() {
	if r.socket != nil {
		_ = r.socket.Close() // nobody wants it any more
	}
}

// NewClient takes over a socket of Pair.
func NewClient(socket *os.File) (*Client, error) {
	conn, err := packetConn(socket)
	if err != nil {
		return nil, err
	}
	c := &Client{conn: conn, done: make(chan struct{}), shares: fairqueue.New(shares()), waiting: map[uint64]chan<- reply{}}
	safego.Go(c.readAnswers)
	return c, nil
}

// Done is closed when the dialer went away.
func (c *Client) Done() <-chan struct{} { return c.done }

// Close ends the connection; the dialer ends then.
func (c *Client) Close() error { return c.conn.Close() }

// readAnswers takes the answers to those who wait for them.
func (c *Client) readAnswers() {
	defer close(c.done)
	packet, rights := make([]byte, maxPacket), make([]byte, unix.CmsgSpace(4))
	for {
		n, oob, _, _, err := c.conn.ReadMsgUnix(packet, rights)
		if err != nil || n == 0 {
			return
		}
		r := reply{socket: socketOf(rights[:oob])}
		if err := json.Unmarshal(packet[:n], &r.dialAnswer); err != nil {
			r.dropSocket()
			return
		}
		c.mu.Lock()
		to, wanted := c.waiting[r.ID]
		delete(c.waiting, r.ID)
		if wanted {
			to <- r // it has room
		}
		c.mu.Unlock()
		if !wanted {
			r.dropSocket()
		}
	}
}

// socketOf is the descriptor that came along; nil: none did.
func socketOf(rights []byte) *os.File {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil
	}
	for _, m := range messages {
		if fds, err := unix.ParseUnixRights(&m); err == nil && len(fds) > 0 {
			return os.NewFile(uintptr(fds[0]), "connection")
		}
	}
	return nil
}

// askQuestion waits for the answer to a question, as long as ctx lets it.
func (c *Client) askQuestion(ctx context.Context, q dialQuestion) (reply, error) {
	_, leave, err := c.shares.Take(ctx)
	if err != nil {
		return reply{}, err
	}
	defer leave()
	limit := longest
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end))
	}
	q.Millis = limit.Milliseconds()
	answered := make(chan reply, 1)
	c.mu.Lock()
	c.next++
	q.ID = c.next
	c.waiting[q.ID] = answered
	c.mu.Unlock()
	text, err := json.Marshal(q)
	if err == nil && len(text) > maxPacket {
		err = fault.Invalid("a question of %d bytes to the dialer", len(text))
	}
	if err == nil {
		_, err = c.conn.Write(text)
	}
	if err != nil {
		c.forgetAnswer(q.ID, answered)
		return reply{}, err
	}
	select {
	case r := <-answered:
		return r, r.checkReply()
	case <-ctx.Done():
		c.forgetAnswer(q.ID, answered)
		return reply{}, ctx.Err()
	case <-c.done:
		c.forgetAnswer(q.ID, answered)
		return reply{}, ErrGone
	}
}

// forgetAnswer drops the answer that nobody waits for any more, which may have come.
func (c *Client) forgetAnswer(id uint64, answered <-chan reply) {
	c.mu.Lock()
	_, waited := c.waiting[id]
	delete(c.waiting, id)
	c.mu.Unlock()
	if waited {
		return
	}
	select {
	case r := <-answered:
		r.dropSocket()
	default:
	}
}

func (r reply) checkReply() error {
	switch {
	case r.Refused:
		return fault.New(fault.ErrForbidden, "%s", r.Error)
	case r.Error != "":
		return errors.New(r.Error)
	}
	return nil
}

// LookupNetIP resolves a name on the dialer's side.
func (c *Client) LookupNetIP(ctx context.Context, _, host string) ([]netip.Addr, error) {
	r, err := c.askQuestion(ctx, dialQuestion{Resolve: host})
	r.dropSocket()
	return r.Addresses, err
}

// DialContext connects to an IP address and a port over TCP.
func (c *Client) DialContext(ctx context.Context, network, at string) (net.Conn, error) {
	if !strings.HasPrefix(network, "tcp") {
		return nil, fault.Invalid("the dialer connects over TCP, and not over %.20s", network)
	}
	r, err := c.askQuestion(ctx, dialQuestion{Dial: at})
	if err != nil {
		r.dropSocket()
		return nil, fmt.Errorf("dial %s: %w", at, err)
	}
	if r.socket == nil {
		return nil, fault.Invalid("the dialer's answer has no socket")
	}
	defer r.socket.Close()
	return net.FileConn(r.socket)
}
