package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// relay is what the gateway's ways are measured against: guests' streams to directHost go
// to the server as they are, with no check, no count and no record. For as long as it has
// to it takes the place of the gateway's socket, and hands on what is not for that host.
type relay struct {
	uplink, gateway, own string // sockets: where the keeper brings streams; the gateway's and the relay's beside it
	far                  string // the server's address
	listener             net.Listener
	streams              sync.WaitGroup
}

func (b *bench) startRelay(ctx context.Context) (*relay, error) {
	at := b.daemon.paths.Uplink()
	r := &relay{uplink: at, gateway: at + ".gateway", own: at + ".bench", far: b.registry.server.Listener.Addr().String()}
	if err := os.Link(r.uplink, r.gateway); err != nil {
		return nil, err
	}
	var err error
	if r.listener, err = (&net.ListenConfig{}).Listen(ctx, "unix", r.own); err != nil {
		return nil, err
	}
	r.streams.Go(func() { r.serve(ctx) })
	return r, nil
}

// during has new streams come to the relay while do is done.
func (r *relay) during(do func() error) error {
	if err := r.swap(r.own); err != nil {
		return err
	}
	return errors.Join(do(), r.swap(r.gateway))
}

// swap has the uplink be a socket, in one step.
func (r *relay) swap(socket string) error {
	next := r.uplink + ".next"
	if err := os.Link(socket, next); err != nil {
		return err
	}
	return os.Rename(next, r.uplink)
}

func (r *relay) close() error {
	err := errors.Join(r.swap(r.gateway), r.listener.Close(), os.Remove(r.gateway))
	r.streams.Wait()
	return err
}

func (r *relay) serve(ctx context.Context) {
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.streams.Go(func() {
			defer func() { _ = conn.Close() }() // both have ended, or broken
			_ = r.carry(ctx, conn)              // the client sees it
		})
	}
}

// carry takes one stream to the server, or to the gateway.
func (r *relay) carry(ctx context.Context, guest net.Conn) error {
	frames := channel.NewConn(guest)
	_, identity, err := frames.ReadFrame()
	if err != nil {
		return err
	}
	kind, first, err := frames.ReadFrame()
	if err != nil {
		return err
	}
	var open channel.Open
	if err := channel.DecodeStrictJSON(kind, first, &open); err != nil {
		return err
	}
	if open.Kind == channel.OpenTCP && open.Name == directHost {
		far, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.far)
		if err != nil {
			return err
		}
		if err := frames.WriteJSON(channel.FrameReply, channel.Reply{OK: true}); err != nil {
			return errors.Join(err, far.Close())
		}
		return both(guest, far)
	}
	far, err := (&net.Dialer{}).DialContext(ctx, "unix", r.gateway)
	if err != nil {
		return err
	}
	out := channel.NewConn(far)
	if err := errors.Join(out.WriteFrame(kind, identity), out.WriteFrame(kind, first)); err != nil {
		return errors.Join(err, far.Close())
	}
	return both(guest, far)
}

// both copies both ways until both have ended, and closes far.
func both(guest, far net.Conn) error {
	var ways sync.WaitGroup
	for _, pair := range [][2]net.Conn{{guest, far}, {far, guest}} {
		ways.Go(func() {
			_, _ = io.Copy(pair[0], pair[1]) // its client sees it
			if half, ok := pair[0].(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite() // it may have gone
			}
		})
	}
	ways.Wait()
	return far.Close()
}
