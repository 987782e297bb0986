// Package transfers puts on record what clients do with the files of sandboxes: that a file is
// about to be written, read, moved or removed, or a directory made, before that happens, and how it ended.
//
// All ways to a sandbox's files, and whoever of the daemon needs one, go through
// sandbox.Manager, which begins a transfer for each. A directory that a client copies is one
// transfer for each of its files, since that is how it travels.
package transfers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"log/slog"
	"net"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// Door is what puts a transfer on record; *admission.Controller is one.
type Door interface {
	FileBegins(ctx context.Context, sandbox string, f channel.File) (*admission.FileBegun, error)
}

// Transfer is what a client does with one file. A nil one is of an operation that has no record.
type Transfer struct {
	begun *admission.FileBegun
	log   *slog.Logger
	op    channel.FileOp

	mu       sync.Mutex // guards what follows
	size     int64      // bytes that a file has which is read
	absolute string     // its path, as the guest says
	sum      hash.Hash  // of the bytes
	asked    bool       // the end of what is written was sent
	reply    *channel.Reply
}

// Begin puts on record that an operation is about to be done, if it is one that changes what lies in
// the sandbox or has a file's content move: write, mkdir, move, remove and read. After an error it may
// not be done.
func Begin(ctx context.Context, door Door, log *slog.Logger, sandbox string, f channel.File) (*Transfer, error) {
	switch f.Op {
	case channel.FileWrite, channel.FileRead, channel.FileMkdir, channel.FileMove, channel.FileRemove:
	case channel.FileStat, channel.FileList, channel.FileWatch:
		return nil, nil //nolint:nilnil // as said above: they look at names, and change nothing
	}
	begun, err := door.FileBegins(ctx, sandbox, f)
	if err != nil {
		return nil, err
	}
	return &Transfer{begun: begun, log: log, op: f.Op, sum: sha256.New()}, nil
}

// Answered ends an operation that is one reply, or that came to no stream: err is what the client
// is told.
func (t *Transfer) Answered(err error) {
	if t == nil {
		return
	}
	end := admission.FileEnd{Outcome: audit.Finished, Claimed: true}
	if _, refused := errors.AsType[*channel.FileError](err); refused {
		end.Outcome, end.Reason = audit.Failed, err.Error()
	} else if err != nil {
		end = admission.FileEnd{Outcome: audit.Aborted, Reason: "the sandbox's agent did not answer: " + err.Error()}
	}
	t.recordEnd(end)
}

// Follow is the stream of a read, of a file as info tells of it, or of a write. Its Close ends the
// transfer.
func (t *Transfer) Follow(conn net.Conn, info channel.FileInfo) net.Conn {
	if t == nil {
		return conn
	}
	t.size, t.absolute = info.Size, info.Path
	f := &followed{Conn: conn, t: t}
	f.in.data, f.out.data = func(channel.FrameType, []byte) {}, func(channel.FrameType, []byte) {}
	f.in.end, f.out.end = f.noteSent, f.received
	if t.op == channel.FileWrite {
		f.in.data = t.bytesOf(channel.FrameStdin)
	} else {
		f.out.data = t.bytesOf(channel.FrameStdout)
	}
	return f
}

// bytesOf takes the bytes of a file out of frames of a kind.
func (t *Transfer) bytesOf(content channel.FrameType) func(channel.FrameType, []byte) {
	return func(kind channel.FrameType, p []byte) {
		if kind != content {
			return
		}
		t.begun.Moved(len(p))
		t.sum.Write(p) // a hash never fails
	}
}

// ofStream is how the transfer of a stream ended that is closed now.
func (t *Transfer) ofStream() admission.FileEnd {
	t.mu.Lock()
	defer t.mu.Unlock()
	end := admission.FileEnd{Outcome: audit.Failed, Absolute: t.absolute}
	switch {
	case t.reply == nil:
		end.Outcome, end.Reason = audit.Aborted, t.whyBroke()
	case !t.reply.OK:
		end.Reason, end.Claimed = t.reply.Err().Error(), true
	case t.op == channel.FileWrite && !t.asked, t.op == channel.FileRead && t.begun.Bytes() != t.size:
		end.Reason = "the sandbox's agent says that it is done, and not all of the file went over"
	default:
		end.Outcome, end.Claimed = audit.Finished, t.op == channel.FileWrite
		end.SHA256 = hex.EncodeToString(t.sum.Sum(nil))
		if info, err := t.reply.FileInfo(); err == nil && info.Path != "" {
			end.Absolute = info.Path
		}
	}
	return end
}

// whyBroke is why there is no reply; mu is held.
func (t *Transfer) whyBroke() string {
	if t.op == channel.FileWrite && t.asked {
		return "it broke off when all was sent: whether the file is there is not known"
	}
	return "it broke off before the end: the client went away, or the sandbox did"
}

// recordEnd puts an end on record.
func (t *Transfer) recordEnd(end admission.FileEnd) {
	if err := t.begun.End(context.Background(), end); err != nil {
		t.log.Error("the end of a file's transfer is not on record; it will be told as cut off", "err", err)
	}
}

// followed is a connection with the frames of a transfer.
type followed struct {
	net.Conn
	t       *Transfer
	in, out frames // of what is written to it, and read from it; guarded by t.mu
	once    sync.Once
}

// noteSent takes the end of a frame that went in: an empty one is the end of what is written.
func (f *followed) noteSent(kind channel.FrameType) {
	if kind == channel.FrameStdin && f.in.size == 0 {
		f.t.asked = true
	}
}

// received takes the end of a frame that came out: the first reply is the last word.
func (f *followed) received(kind channel.FrameType) {
	if kind != channel.FrameReply || f.t.reply != nil {
		return
	}
	var reply channel.Reply
	if channel.DecodeJSON(kind, f.out.reply, &reply) == nil {
		f.t.reply = &reply
	}
}

// Read implements net.Conn.
func (f *followed) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	f.t.mu.Lock()
	defer f.t.mu.Unlock()
	f.out.passBytes(p[:n])
	return n, err
}

// Write implements net.Conn.
func (f *followed) Write(p []byte) (int, error) {
	n, err := f.Conn.Write(p)
	f.t.mu.Lock()
	defer f.t.mu.Unlock()
	f.in.passBytes(p[:n])
	return n, err
}

// Close ends the connection, and the transfer.
func (f *followed) Close() error {
	err := f.Conn.Close()
	f.once.Do(func() { f.t.recordEnd(f.t.ofStream()) })
	return err
}

// CloseWrite ends the client's half.
func (f *followed) CloseWrite() error {
	if half, ok := f.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return f.Close()
}
