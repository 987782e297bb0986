package outputscan_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp/secrets"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/outputscan"
)

const (
	token  = "glpat-" + "aB3dE6gH9kaB3dE6gH9k"
	masked = "**************************"
)

// door keeps what was found.
type door struct {
	plan dlp.Plan
	fail error

	mu    sync.Mutex // guards found
	found []dlp.Finding
}

func (d *door) Scanning(string) (policy.Scanning, error) {
	return policy.Scanning{Output: d.plan, Files: d.plan}, nil
}

func (d *door) Found(_ context.Context, _ string, _ admission.Place, _ string, f dlp.Finding) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.found = append(d.found, f)
	return d.fail
}

func (d *door) all() []dlp.Finding {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.found
}

// command plays the keeper: frames from an offset on.
type command struct {
	written []string // a piece with "!" in front is of stderr
}

func (c command) attach(_ context.Context, offset int64) (net.Conn, error) {
	here, there := net.Pipe()
	go func() {
		defer here.Close()
		w := channel.NewWriter(here)
		at := int64(0)
		for _, text := range c.written {
			kind := channel.FrameStdout
			if rest, is := strings.CutPrefix(text, "!"); is {
				kind, text = channel.FrameStderr, rest
			}
			from := min(max(offset-at, 0), int64(len(text)))
			at += int64(len(text))
			if text = text[from:]; text != "" && w.WriteFrame(kind, []byte(text)) != nil {
				return
			}
		}
		_ = w.WriteJSON(channel.FrameExit, channel.Exit{})
	}()
	return there, nil
}

func scanner(d *door) *outputscan.Scanner {
	return outputscan.New(func() *dlp.Set { return dlp.NewSet(secrets.Rules()...) }, d, nil)
}

// read is all that a connection says: stdout, stderr, and whether the exit came.
func read(t *testing.T, conn net.Conn) (stdout, stderr string, exited bool) {
	t.Helper()
	defer conn.Close()
	r := channel.NewReader(conn)
	for {
		kind, payload, err := r.ReadFrame()
		if err != nil {
			return stdout, stderr, false
		}
		switch kind { //nolint:exhaustive // what else comes is no output
		case channel.FrameStdout:
			stdout += string(payload)
		case channel.FrameStderr:
			stderr += string(payload)
		case channel.FrameExit:
			return stdout, stderr, true
		}
	}
}

// TestOutput: what is found in either stream is redacted, wherever the frames are cut, from
// whatever offset a client attaches; the findings say where in the whole output.
func TestOutput(t *testing.T) {
	whole := "begin " + token + " end\n"
	for cut := 1; cut < len(whole); cut += 3 {
		for offset := int64(0); offset < int64(len(whole)); offset += 5 {
			d := &door{plan: dlp.Plan{Secrets: dlp.Redact}}
			c := command{[]string{whole[:cut], whole[cut:], "!error " + token + "\n"}}
			conn, err := scanner(d).Output(t.Context(), "box", "cmd", offset, c.attach, nil)
			if err != nil {
				t.Fatal(err)
			}
			stdout, stderr, exited := read(t, conn)
			if want := strings.Replace(whole, token, masked, 1)[offset:]; stdout != want || stderr != "error "+masked+"\n" || !exited {
				t.Fatalf("cut %d, offset %d: %q, %q, %v", cut, offset, stdout, stderr, exited)
			}
			found := d.all()
			if len(found) != 2 || found[0].At != 6 || found[1].At != int64(len(whole))+6 {
				t.Fatalf("cut %d, offset %d: %+v", cut, offset, found)
			}
		}
	}
}

// TestReportedAndOff: report changes nothing, and off looks at nothing.
func TestReportedAndOff(t *testing.T) {
	for plan, n := range map[dlp.Plan]int{{Secrets: dlp.Report}: 1, {}: 0} {
		d := &door{plan: plan}
		conn, err := scanner(d).Output(t.Context(), "box", "cmd", 0, command{[]string{"a " + token[:9], token[9:] + " b"}}.attach, nil)
		if err != nil {
			t.Fatal(err)
		}
		if stdout, _, exited := read(t, conn); stdout != "a "+token+" b" || !exited || len(d.all()) != n {
			t.Errorf("%+v: %q, %v, %+v", plan, stdout, exited, d.all())
		}
	}
}

// TestBlockedOutput: nothing goes out from the value on, of neither stream, the command is
// killed, and its end is told; a client that attaches behind it, however far, reads nothing, too.
func TestBlockedOutput(t *testing.T) {
	const piece, pieces = 20_000, 40
	follows := slices.Repeat([]string{strings.Repeat("a line that follows\n", piece/20)}, pieces)
	c := command{slices.Concat([]string{"before " + token + " after\n", "!and errors\n"}, follows, []string{"more\n"})}
	for _, offset := range []int64{0, 3, 50, piece * pieces} {
		d, killed := &door{plan: dlp.Plan{Secrets: dlp.Block}}, make(chan struct{}, 2)
		conn, err := scanner(d).Output(t.Context(), "box", "cmd", offset, c.attach, func() { killed <- struct{}{} })
		if err != nil {
			t.Fatal(err)
		}
		stdout, stderr, exited := read(t, conn)
		if want := "before "[min(offset, 7):]; stdout != want || stderr != "" || !exited || len(killed) != 1 {
			t.Errorf("offset %d: %q, %q, exited %v, killed %d times", offset, stdout, stderr, exited, len(killed))
		}
	}
}

// TestUnrecorded: what can't be put on record does not go out.
func TestUnrecorded(t *testing.T) {
	d := &door{plan: dlp.Plan{Secrets: dlp.Redact}, fail: errors.New("the disk is full")}
	conn, err := scanner(d).Output(t.Context(), "box", "cmd", 0, command{[]string{"a " + token + " b"}}.attach, nil)
	if err != nil {
		t.Fatal(err)
	}
	if stdout, _, exited := read(t, conn); stdout != "" || exited {
		t.Errorf("%q, %v", stdout, exited)
	}
}

// TestWhatWaitsGoes: a prompt that looks like the beginning of something is shown after a
// moment, and what goes on afterwards is still found.
func TestWhatWaitsGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &door{plan: dlp.Plan{Secrets: dlp.Redact}}
		guest, conn := net.Pipe()
		attach := func(context.Context, int64) (net.Conn, error) { return conn, nil }
		flow, err := scanner(d).Output(t.Context(), "box", "cmd", 0, attach, nil)
		if err != nil {
			t.Fatal(err)
		}
		w, r := channel.NewWriter(guest), channel.NewReader(flow)
		next := func(want string, after time.Duration) {
			t.Helper()
			began := time.Now()
			kind, payload, err := r.ReadFrame()
			if err != nil || kind != channel.FrameStdout || string(payload) != want || time.Since(began) != after {
				t.Errorf("%q, %v after %s; want %q after %s", payload, err, time.Since(began), want, after)
			}
		}
		write := func(text string) {
			if err := w.WriteFrame(channel.FrameStdout, []byte(text)); err != nil {
				t.Error(err)
			}
		}
		write("token: g")
		next("token: ", 0)
		next("g", dlp.ShortPatience)
		write("lpat-aB3dE6gH9k")
		synctest.Wait()
		next("lpat-aB3dE6gH9k", dlp.LongPatience) // what goes on now has begun as a secret
		write(token[16:] + "\n")
		next(strings.Repeat("*", len(token)-16)+"\n", 0)
		if found := d.all(); len(found) != 1 || !found[0].Late || found[0].At != 7 {
			t.Errorf("%+v", found)
		}
		_ = flow.Close()
		_ = guest.Close()
	})
}

func TestWritten(t *testing.T) {
	d := &door{plan: dlp.Plan{Secrets: dlp.Redact}}
	out := keeper.Output{Passages: []keeper.Passage{
		{Stdout: []byte("a " + token[:10]), Stderr: []byte("nothing\n")}, {Stdout: []byte(token[10:20])}, {Stdout: []byte(token[20:] + " b\n")},
	}}
	clean, err := scanner(d).Written(t.Context(), "box", "cmd", out)
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	for _, p := range clean.Passages {
		stdout.Write(p.Stdout)
		stderr.Write(p.Stderr)
	}
	if stdout.String() != "a "+masked+" b\n" || stderr.String() != "nothing\n" || len(d.all()) != 1 {
		t.Errorf("%q, %q, %+v", stdout.String(), stderr.String(), d.all())
	}
}

// file plays the guest agent, which sends a file in pieces.
func file(pieces ...string) net.Conn {
	here, there := net.Pipe()
	go func() {
		w := channel.NewWriter(here)
		for _, p := range pieces {
			if w.WriteFrame(channel.FrameStdout, []byte(p)) != nil {
				return
			}
		}
		_ = w.WriteJSON(channel.FrameReply, channel.Reply{OK: true})
		_, _ = io.Copy(io.Discard, here)
	}()
	return there
}

func TestFile(t *testing.T) {
	content := "key = " + token + "\nmore\n"
	for outcome, want := range map[dlp.Outcome]string{dlp.Off: content, dlp.Report: content, dlp.Redact: strings.Replace(content, token, masked, 1), dlp.Block: ""} {
		d := &door{plan: dlp.Plan{Secrets: outcome}}
		conn, err := scanner(d).File(t.Context(), file(content[:20], content[20:]), "box", "/a", int64(len(content)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(channel.NewFileReader(channel.NewConn(conn), int64(len(content))))
		if string(got) != want || (err != nil) != (outcome == dlp.Block) || outcome == dlp.Block && !errors.Is(err, fault.ErrForbidden) {
			t.Errorf("%s: %q, %v", outcome, got, err)
		}
		if n := len(d.all()); n != min(int(outcome), 1) {
			t.Errorf("%s: %d findings", outcome, n)
		}
		_ = conn.Close()
	}
}

// TestLongFile: the beginning of a long file goes out before what is blocked in it comes.
func TestLongFile(t *testing.T) {
	const n = 80
	piece := strings.Repeat("a line of text\n", 1<<10)
	pieces := append(slices.Repeat([]string{piece}, n), token+"\n", piece)
	d := &door{plan: dlp.Plan{Secrets: dlp.Block}}
	conn, err := scanner(d).File(t.Context(), file(pieces...), "box", "/a", 2<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	got, err := io.ReadAll(channel.NewFileReader(channel.NewConn(conn), 2<<20))
	if string(got) != strings.Repeat(piece, n) || !errors.Is(err, fault.ErrForbidden) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestWhatIsKeptOfAFileIsCounted before any of it is read, as much as is kept at most; without room the file is refused.
// Output that goes out as it comes takes none.
func TestWhatIsKeptOfAFileIsCounted(t *testing.T) {
	full := fault.New(fault.ErrExhausted, "full")
	for outcome, size := range map[dlp.Outcome]int64{dlp.Report: 8 << 20, dlp.Redact: 8 << 20, dlp.Block: 8 << 20, dlp.Off: 1} {
		held := 0
		d := &door{plan: dlp.Plan{Secrets: outcome}}
		s := outputscan.New(func() *dlp.Set { return dlp.NewSet(secrets.Rules()...) }, d, func(_ context.Context, n int) (func(), error) {
			held += n
			return nil, full
		})
		conn, err := s.File(t.Context(), file("nothing"), "box", "/a", size)
		if blocks := outcome == dlp.Block; blocks != errors.Is(err, full) || blocks != (held >= 1<<20) || held > 2<<20 || !blocks && held > 0 {
			t.Errorf("%s: %d bytes are counted, %v", outcome, held, err)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
}

// TestTheSizeOfAFileIsWhatItsGuestSays: one that is wrong gives nobody room, and lets nothing out of what is blocked. The control is the
// true size.
func TestTheSizeOfAFileIsWhatItsGuestSays(t *testing.T) {
	content := strings.Repeat("begin\n", 3_000) + "key = " + token + "\nmore\n"
	for _, size := range []int64{int64(len(content)), 0, -1, 1 << 61, 1 << 62, 1<<62 - 1<<11, 1<<63 - 1, -1 << 63} {
		held := 0
		d := &door{plan: dlp.Plan{Secrets: dlp.Block}}
		s := outputscan.New(func() *dlp.Set { return dlp.NewSet(secrets.Rules()...) }, d, func(_ context.Context, n int) (func(), error) {
			held += n
			return func() {}, nil
		})
		conn, err := s.File(t.Context(), file(content[:18_000], content[18_000:]), "box", "/a", size)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(channel.NewFileReader(channel.NewConn(conn), int64(len(content))))
		if held < 0 || held > 2<<20 {
			t.Errorf("size %d: %d bytes are taken", size, held)
		}
		if size >= int64(len(content)) && (len(got) > 0 || !errors.Is(err, fault.ErrForbidden)) {
			t.Errorf("size %d: %d bytes went out, %v", size, len(got), err)
		}
		_ = conn.Close()
	}
}

// TestWhatIsKeptOfAFileIsGivenBack when it is closed, once, whether all of it was read or not: a request that joins many files
// holds no more than one of them takes.
func TestWhatIsKeptOfAFileIsGivenBack(t *testing.T) {
	const most = 2 << 20
	for _, outcome := range []dlp.Outcome{dlp.Block, dlp.Report} {
		held := 0
		s := outputscan.New(func() *dlp.Set { return dlp.NewSet(secrets.Rules()...) }, &door{plan: dlp.Plan{Secrets: outcome}}, func(_ context.Context, n int) (func(), error) {
			if held += n; held > most {
				return nil, fault.New(fault.ErrExhausted, "full")
			}
			return func() { held -= n }, nil
		})
		for i := range 30 {
			conn, err := s.File(t.Context(), file("nothing"), "box", "/a", 8<<20)
			if err != nil {
				t.Fatalf("%s, file %d: %v", outcome, i, err)
			}
			if (held > 0) != (outcome == dlp.Block) {
				t.Errorf("the control: %s: %d bytes are held for it", outcome, held)
			}
			if i%2 == 0 {
				if got, err := io.ReadAll(channel.NewFileReader(channel.NewConn(conn), 7)); err != nil || string(got) != "nothing" {
					t.Errorf("%q %v", got, err)
				}
			}
			_ = conn.Close()
			_ = conn.Close()
			if held != 0 {
				t.Fatalf("%s: %d bytes are held when it is closed", outcome, held)
			}
		}
	}
}
