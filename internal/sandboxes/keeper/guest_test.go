package keeper

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// fakeGuest is a guest agent whose commands are canned, most of them rude.
type fakeGuest struct {
	session *channel.Session
	wire    net.Conn
	written atomic.Int64 // bytes that floods have written
	taken   atomic.Int64 // bytes of input that were read
	open    []*channel.Conn
	signals sync.Map // by the ids of commands called "controlled": chan string
}

func beGuest() error {
	wire, err := net.FileConn(os.NewFile(0, "wire"))
	if err != nil {
		return err
	}
	session, err := channel.NewGuestSession(wire)
	if err != nil {
		return err
	}
	g := &fakeGuest{session: session, wire: wire}
	for {
		stream, err := session.Accept()
		if err != nil {
			return nil //nolint:nilerr // the keeper is gone, and so is the guest
		}
		go g.serve(stream)
	}
}

func (g *fakeGuest) serve(stream *channel.Conn) {
	defer stream.Close()
	var call channel.Call
	if err := stream.ReadJSON(channel.FrameOpen, &call); err != nil {
		return
	}
	switch call.Kind { //nolint:exhaustive // The others are left unanswered.
	case channel.CallExec:
		g.exec(stream, call.Exec)
	case channel.CallAdopt:
		g.adopt(stream, call.Adopt)
	case channel.CallInventory: // as large as it may be, with a field of the future
		body := bytes.Repeat([]byte("x"), 190_000)
		reply, _ := json.Marshal(map[string]any{"ok": true, "body": body, "future": 1})
		_ = stream.WriteFrame(channel.FrameReply, reply)
	case channel.CallConfigure:
		_ = stream.WriteJSON(channel.FrameReply, channel.Reply{Error: "no\x1b[31m such\nhost " + strings.Repeat("y", 5000)})
	case channel.CallPing:
		text, _ := json.Marshal([]int64{g.written.Load(), g.taken.Load()})
		_ = stream.WriteJSON(channel.FrameReply, channel.Reply{OK: true, Text: string(text)})
	case channel.CallHold, channel.CallResume:
		_ = stream.WriteJSON(channel.FrameReply, channel.Reply{OK: true})
	case channel.CallControl:
		g.control(stream, call.Control)
	case "echo", "flood", "deaf", "leave", channel.CallDial:
		g.stream(stream, call.Kind)
	case "hang":
		_, _ = io.Copy(io.Discard, stream.Raw())
	case "oversize":
		_, _ = stream.Raw().Write([]byte{byte(channel.FrameReply), 0xff, 0xff, 0xff, 0xff})
	}
}

// control knows the commands called "controlled", never answers about one called "mute", and
// says of others what an agent says that is older than the call.
func (g *fakeGuest) control(stream *channel.Conn, c *channel.Control) {
	if c.Command == "mute" {
		_, _ = io.Copy(io.Discard, stream.Raw())
		return
	}
	signals, ok := g.signals.Load(c.Command)
	if !ok {
		_ = stream.WriteJSON(channel.FrameReply, channel.Reply{Error: channel.UnknownCall(channel.CallControl)})
		return
	}
	if c.Signal != nil {
		signals.(chan string) <- c.Signal.Name //nolint:forcetypeassert // nothing else is in it
	}
	_ = stream.WriteJSON(channel.FrameReply, channel.Reply{OK: true})
}

// stream is raw after a reply, and then as rude as its kind says.
func (g *fakeGuest) stream(stream *channel.Conn, kind channel.CallKind) {
	_ = stream.WriteJSON(channel.FrameReply, channel.Reply{OK: true, Text: string(kind)})
	switch kind { //nolint:exhaustive // Others do not come here.
	case "echo":
		_, _ = io.Copy(struct{ io.Writer }{stream.Raw()}, struct{ io.Reader }{stream.Raw()})
	case "flood":
		for buf := make([]byte, 64<<10); ; {
			n, err := stream.Raw().Write(buf)
			if g.written.Add(int64(n)); err != nil {
				return
			}
		}
	case "deaf", channel.CallDial:
		select {}
	}
}

// adopt has a command that repeats its input, and none called "gone".
func (g *fakeGuest) adopt(stream *channel.Conn, id string) {
	if id == "gone" {
		_ = stream.WriteJSON(channel.FrameReply, channel.Reply{Error: "there is none", Code: channel.CodeNotFound})
		return
	}
	_ = stream.WriteJSON(channel.FrameReply, channel.Reply{OK: true})
	_ = stream.WriteJSON(channel.FrameStarted, channel.Started{PID: 7})
	_ = stream.WriteFrame(channel.FrameStdout, []byte("held back "))
	exit := channel.Exit{Signal: g.cat(stream)}
	_ = stream.WriteJSON(channel.FrameExit, exit)
}

func (g *fakeGuest) exec(stream *channel.Conn, e *channel.Exec) {
	if e.Argv[0] == "refuse" {
		_ = stream.WriteJSON(channel.FrameReply, channel.Reply{Error: "no such user"})
		return
	}
	_ = stream.WriteJSON(channel.FrameReply, channel.Reply{OK: true})
	if e.Argv[0] == "silent" { // it could not be started
		_ = stream.WriteJSON(channel.FrameExit, channel.Exit{Code: 127})
		return
	}
	_ = stream.WriteJSON(channel.FrameStarted, channel.Started{PID: 7})
	exit := channel.Exit{StdoutBytes: 1 << 60, StderrBytes: -1, Truncated: true} // the keeper knows better
	arg := func(i int) int { n, _ := strconv.Atoi(e.Argv[i]); return n }
	switch e.Argv[0] {
	case "echo":
		_ = stream.WriteFrame(channel.FrameStdout, []byte(strings.Join(e.Argv[1:], " ")))
	case "code":
		exit.Code = arg(1)
	case "both": // n bytes on each stream, in turns of three
		for range arg(1) / 3 {
			_ = stream.WriteFrame(channel.FrameStdout, []byte("out"))
			_ = stream.WriteFrame(channel.FrameStderr, []byte("err"))
		}
	case "flood":
		g.flood(stream, int64(arg(1)))
	case "cat":
		exit.Signal = g.cat(stream)
	case "heedless": // tells of signals, and goes on
		for {
			kind, _, err := stream.ReadFrame()
			if err != nil {
				return
			}
			if kind == channel.FrameSignal {
				_ = stream.WriteFrame(channel.FrameStdout, []byte("!"))
			}
		}
	case "controlled": // reads nothing, and ends of a signal
		signals := make(chan string)
		g.signals.Store(e.ID, signals)
		_ = stream.WriteFrame(channel.FrameStdout, []byte("ready"))
		exit.Signal = <-signals
	case "deaf":
		select {}
	case "hangup":
		return
	case "gap":
		_ = stream.WriteJSON(channel.FrameGap, channel.Gap{Bytes: 1})
		return
	case "huge":
		_, _ = stream.Raw().Write([]byte{byte(channel.FrameStdout), 0, 1, 0, 1})
		return
	case "badexit":
		_ = stream.WriteFrame(channel.FrameExit, []byte(`{"code":`))
		return
	case "rudeexit":
		exit.Error = "\x1b]52;c;\x07" + strings.Repeat("z", 10_000)
	case "die":
		os.Exit(arg(1))
	case "garbage":
		_, _ = g.wire.Write(bytes.Repeat([]byte{0xff}, 64))
		return
	case "open":
		g.opens(stream, e.Argv[1:])
	case "rawopen": // a first frame that claims 4 GiB
		if up, err := g.dial(); err == nil {
			_, _ = up.Raw().Write([]byte{byte(channel.FrameOpen), 0xff, 0xff, 0xff, 0xff})
			_ = up.CloseWrite()
			back, _ := io.ReadAll(up.Raw())
			_ = stream.WriteFrame(channel.FrameStdout, back)
		}
	case "slowopen": // a stream whose first frame waits for input
		if up, err := g.dial(); err == nil {
			_, _ = up.Raw().Write([]byte{byte(channel.FrameOpen)})
			_ = stream.WriteFrame(channel.FrameStdout, []byte("opened"))
			_, _, _ = stream.ReadFrame()
			_, _ = up.Raw().Write([]byte{0, 0, 0, 2, '{', '}'})
			_ = up.CloseWrite()
			back, _ := io.ReadAll(up.Raw())
			_ = stream.WriteFrame(channel.FrameStdout, back)
		}
	case "stall": // streams without a first frame, and one that stops within it
		g.stall()
	case "many":
		g.many(stream, arg(1))
	}
	_ = stream.WriteJSON(channel.FrameExit, exit)
}

// pattern is the byte at an offset of a flood.
func pattern(offset int64) byte { return byte(offset % 251) }

func (g *fakeGuest) flood(stream *channel.Conn, n int64) {
	buf := make([]byte, 32<<10)
	for at := int64(0); at < n; {
		p := buf[:min(int64(len(buf)), n-at)]
		for i := range p {
			p[i] = pattern(at + int64(i))
		}
		if stream.WriteFrame(channel.FrameStdout, p) != nil {
			return
		}
		at += int64(len(p))
		g.written.Store(at)
	}
}

// cat repeats its input until its end or a signal, whose name it returns.
func (g *fakeGuest) cat(stream *channel.Conn) string {
	for {
		kind, payload, err := stream.ReadFrame()
		if err != nil {
			return ""
		}
		switch kind {
		case channel.FrameStdin:
			if len(payload) == 0 {
				return ""
			}
			g.taken.Add(int64(len(payload)))
			_ = stream.WriteFrame(channel.FrameStdout, payload)
		case channel.FrameResize:
			_ = stream.WriteFrame(channel.FrameStderr, payload)
		case channel.FrameSignal:
			var s channel.Signal
			_ = channel.DecodeJSON(kind, payload, &s)
			return s.Name
		default: // not for a guest
		}
	}
}

// opens opens a stream with args[0] as its FrameOpen, sends args[1] and the
// half-close, and prints all that comes back.
func (g *fakeGuest) opens(stream *channel.Conn, args []string) {
	err := errors.New("no stream")
	if up, openErr := g.dial(); openErr == nil {
		_ = up.WriteFrame(channel.FrameOpen, []byte(args[0]))
		_, _ = io.WriteString(up.Raw(), args[1])
		_ = up.CloseWrite()
		var back []byte
		back, err = io.ReadAll(up.Raw())
		for chunk := range slices.Chunk(back, channel.MaxPayload) {
			_ = stream.WriteFrame(channel.FrameStdout, chunk)
		}
	}
	if err != nil {
		_ = stream.WriteFrame(channel.FrameStderr, []byte(err.Error()))
	}
}

func (g *fakeGuest) dial() (*channel.Conn, error) {
	return g.session.Open(context.Background())
}

func (g *fakeGuest) stall() {
	for i := range 3 {
		up, err := g.dial()
		if err != nil {
			return
		}
		_, _ = up.Raw().Write([]byte{byte(channel.FrameOpen), 0, 0, 0, 9, '{'}[:3*i])
		_, _ = io.Copy(io.Discard, up.Raw()) // the refusal, and the end
		_ = up.Close()
	}
}

// many opens n streams, keeps them, and prints how many were let in, how many
// refused.
func (g *fakeGuest) many(stream *channel.Conn, n int) {
	in, out := 0, 0
	for range n {
		up, err := g.dial()
		if err != nil {
			break
		}
		var reply channel.Reply
		_ = up.WriteJSON(channel.FrameOpen, channel.Open{Kind: channel.OpenTCP, Name: "index.example", Port: 443})
		_ = up.ReadJSON(channel.FrameReply, &reply)
		if reply.OK {
			in++
			g.open = append(g.open, up)
			continue
		}
		out++
		_ = up.Close()
	}
	text, _ := json.Marshal([]int{in, out})
	_ = stream.WriteFrame(channel.FrameStdout, text)
}
