package transfers_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/transfers"
)

// pieces is a connection that gives and takes its bytes in pieces of a length.
type pieces struct {
	net.Conn
	most int
}

func (p pieces) Read(to []byte) (int, error) { return p.Conn.Read(to[:min(len(to), p.most)]) }

func (p pieces) Write(from []byte) (int, error) {
	done := 0
	for done < len(from) {
		n, err := p.Conn.Write(from[done:min(len(from), done+p.most)])
		if done += n; err != nil {
			return done, err
		}
	}
	return done, nil
}

// controller knows the sandbox sb.
func controller(t *testing.T, log audit.Log) *admission.Controller {
	t.Helper()
	p, err := policy.Parse("test", []byte("packages: { default: deny }\n"))
	if err != nil {
		t.Fatal(err)
	}
	c := admission.New(admission.Config{Log: log})
	if err := c.Register(admission.Run{Sandbox: "sb", Run: "r", User: "ann", Token: "tk", Policy: p}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Unregister("sb") })
	return c
}

// TestWhatTheAgentSaysIsNotWhatWentOver: a transfer is whole if the bytes that this side counted
// are, whatever pieces they came in and whatever the agent says.
func TestWhatTheAgentSaysIsNotWhatWentOver(t *testing.T) {
	t.Parallel()
	const content = "the content"
	sum := sha256.Sum256([]byte(content))
	frame := func(kind channel.FrameType, payload string) string {
		var b strings.Builder
		if err := channel.NewWriter(&b).WriteFrame(kind, []byte(payload)); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	const done = `{"ok":true}`
	for name, c := range map[string]struct {
		op      channel.FileOp
		sent    string // by the host
		says    string // the agent
		outcome audit.Outcome
		bytes   int64
	}{
		"read":                        {channel.FileRead, "", frame(channel.FrameStdout, content[:4]) + frame(channel.FrameStdout, content[4:]) + frame(channel.FrameReply, done), audit.Finished, 11},
		"read of less":                {channel.FileRead, "", frame(channel.FrameStdout, content[:4]) + frame(channel.FrameReply, done), audit.Failed, 4},
		"read of more":                {channel.FileRead, "", frame(channel.FrameStdout, content+"!") + frame(channel.FrameReply, done), audit.Failed, 12},
		"read that fails":             {channel.FileRead, "", frame(channel.FrameStdout, content) + frame(channel.FrameReply, `{"ok":false,"error":"it is gone"}`), audit.Failed, 11},
		"read without an end":         {channel.FileRead, "", frame(channel.FrameStdout, content), audit.Aborted, 11},
		"read with an odd end":        {channel.FileRead, "", frame(channel.FrameStdout, content) + frame(channel.FrameReply, `{"ok":`), audit.Aborted, 11},
		"read with a half frame":      {channel.FileRead, "", frame(channel.FrameStdout, content) + frame(channel.FrameReply, done)[:9], audit.Aborted, 11},
		"write":                       {channel.FileWrite, frame(channel.FrameStdin, content) + frame(channel.FrameStdin, ""), frame(channel.FrameReply, done), audit.Finished, 11},
		"write without its end":       {channel.FileWrite, frame(channel.FrameStdin, content), frame(channel.FrameReply, done), audit.Failed, 11},
		"write that is refused":       {channel.FileWrite, frame(channel.FrameStdin, content), frame(channel.FrameReply, `{"ok":false,"code":"no_space","error":"it is full"}`), audit.Failed, 11},
		"write that nobody answers":   {channel.FileWrite, frame(channel.FrameStdin, content) + frame(channel.FrameStdin, ""), "", audit.Aborted, 11},
		"write with output in it":     {channel.FileWrite, frame(channel.FrameStdin, content) + frame(channel.FrameStdin, ""), frame(channel.FrameStdout, "not counted") + frame(channel.FrameReply, done), audit.Finished, 11},
		"read with a second answer":   {channel.FileRead, "", frame(channel.FrameStdout, content) + frame(channel.FrameReply, `{"ok":false,"error":"no"}`) + frame(channel.FrameReply, done), audit.Failed, 11},
		"read of a claim of too much": {channel.FileRead, "", frame(channel.FrameStdout, content) + "\x02\xff\xff\xff\xff{", audit.Aborted, 11},
	} {
		for _, most := range []int{1, 3, 1 << 20} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				log := &approvaltest.Log{}
				transfer, err := transfers.Begin(t.Context(), controller(t, log), slog.New(slog.DiscardHandler), "sb", channel.File{Op: c.op, Path: "a"})
				if err != nil {
					t.Fatal(err)
				}
				here, there := net.Pipe()
				agent := make(chan struct{})
				go func() {
					defer close(agent)
					defer there.Close()
					_, _ = io.CopyN(io.Discard, there, int64(len(c.sent)))
					_, _ = io.WriteString(there, c.says)
				}()
				conn := transfer.Follow(pieces{here, most}, channel.FileInfo{Path: "/home/a", Size: int64(len(content))})
				if _, err := io.WriteString(conn, c.sent); err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, conn)
				<-agent
				_, _ = conn.Close(), conn.Close()
				all := log.All()
				if len(all) != 2 {
					t.Fatalf("%d records", len(all))
				}
				r := all[1]
				if r.Outcome != c.outcome || r.Size != c.bytes || r.User != "ann" || r.Token != "tk" || r.Detail[audit.DetailAbsolute] != "/home/a" {
					t.Errorf("the end is %+v", r)
				}
				want := ""
				if c.outcome == audit.Finished {
					want = hex.EncodeToString(sum[:])
				}
				if got := r.Detail[audit.DetailContentSHA256]; got != want {
					t.Errorf("the digest is %q, want %q", got, want)
				}
			})
		}
	}
}

// TestEveryOperationThatChangesFilesIsOnRecord: of the operations that there are only those have no record
// that look, and change nothing. A new one has to be put into one of the lists.
func TestEveryOperationThatChangesFilesIsOnRecord(t *testing.T) {
	t.Parallel()
	changes := map[channel.FileOp]bool{
		channel.FileWrite: true, channel.FileRead: true, channel.FileMkdir: true, channel.FileMove: true, channel.FileRemove: true,
		channel.FileStat: false, channel.FileList: false, channel.FileWatch: false,
	}
	for op, recorded := range changes {
		log := &approvaltest.Log{}
		transfer, err := transfers.Begin(t.Context(), controller(t, log), slog.New(slog.DiscardHandler), "sb", channel.File{Op: op, Path: "a"})
		if err != nil {
			t.Fatal(err)
		}
		transfer.Answered(nil)
		if all := log.All(); (len(all) == 2) != recorded || len(all) != 0 && len(all) != 2 {
			t.Errorf("%s has %d records: %+v", op, len(all), all)
		}
	}
}
