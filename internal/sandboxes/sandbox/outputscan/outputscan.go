// Package outputscan scans what leaves a sandbox on its way to a client: what commands write,
// and files that are read.
//
// Of a connection with frames, those with bytes are scanned. Bytes that may be the beginning of a
// value are held back.
package outputscan

import (
	"context"
	"net"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// Door is what scanning asks and tells the controller; *admission.Controller is one.
type Door interface {
	Scanning(sandbox string) (policy.Scanning, error)
	Found(ctx context.Context, sandbox string, place admission.Place, where string, f dlp.Finding) error
}

// Scanner scans what leaves sandboxes. Safe for concurrent use.
type Scanner struct {
	set  func() *dlp.Set
	door Door
	hold Hold
}

// Hold takes so many bytes of memory for whoever asks in ctx, or says why there are none. They are given back when that is
// over, or by giveBack before, which is called once.
type Hold func(ctx context.Context, bytes int) (giveBack func(), err error)

// New makes one that looks for what a set knows. hold is asked for what is kept of a file until it is known whether it
// may go out; nil: nobody counts that.
func New(set func() *dlp.Set, door Door, hold Hold) *Scanner {
	if hold == nil {
		hold = func(context.Context, int) (func(), error) { return func() {}, nil }
	}
	return &Scanner{set, door, hold}
}

// lookback is how much of the output before an offset is looked at again, so that a value
// in whose middle the offset lies is found.
const lookback = 32 << 10

// Output attaches to a command's output from an offset on, by attach. kill ends the command
// if what it writes is blocked.
func (s *Scanner) Output(ctx context.Context, sandbox, command string, offset int64, attach func(context.Context, int64) (net.Conn, error), kill func()) (net.Conn, error) {
	rules, err := s.door.Scanning(sandbox)
	if err != nil {
		return nil, err
	}
	if rules.Output.Off() || offset == keeper.Tail {
		return attach(ctx, offset)
	}
	from := offset
	if offset != keeper.FromNow {
		from = beginOffset(rules.Output, offset)
	}
	if from != offset { // whether there is such an offset only the keeper knows
		there, err := attach(ctx, offset)
		if err != nil {
			return nil, err
		}
		_ = there.Close() // it was only asked for
	}
	conn, err := attach(ctx, from)
	if err != nil {
		return nil, err
	}
	f := s.newFlow(conn, rules.Output, sandbox, admission.PlaceOutput, command)
	f.skip, f.at, f.blocked = offset-from, from, kill
	if offset == keeper.FromNow {
		f.skip, f.at = 0, 0
	}
	return f, nil
}

// beginOffset is where to begin to look for an offset: what was blocked before it stays so.
func beginOffset(p dlp.Plan, offset int64) int64 {
	if p.Secrets == dlp.Block || p.Personal == dlp.Block {
		return 0
	}
	return max(0, offset-lookback)
}

// Written is what is kept of a command's output, as it may be read.
func (s *Scanner) Written(ctx context.Context, sandbox, command string, out keeper.Output) (keeper.Output, error) {
	rules, err := s.door.Scanning(sandbox)
	if err != nil || rules.Output.Off() {
		return out, err
	}
	streams := []func(*keeper.Passage) *[]byte{
		func(p *keeper.Passage) *[]byte { return &p.Stdout },
		func(p *keeper.Passage) *[]byte { return &p.Stderr },
	}
	for _, of := range streams {
		scanner := s.set().Scanner(rules.Output)
		var clean []byte
		tell := func(bytes []byte, found []dlp.Finding) {
			clean = append(clean, bytes...)
			for _, f := range found {
				if err == nil {
					err = s.door.Found(ctx, sandbox, admission.PlaceOutput, command, f)
				}
			}
		}
		for i := range out.Passages {
			tell(scanner.Write(*of(&out.Passages[i])))
		}
		tell(scanner.Close())
		if err != nil {
			return keeper.Output{}, err
		}
		for i := range out.Passages {
			text := of(&out.Passages[i])
			n := min(len(*text), len(clean))
			*text, clean = clean[:n:n], clean[n:]
		}
	}
	return out, nil
}

// File is the stream of a file that is read by whoever asks in ctx, of as many bytes as its sandbox
// says. Room that is held for it is given back when it is closed: one request may read many, one
// after the other.
func (s *Scanner) File(ctx context.Context, conn net.Conn, sandbox, path string, size int64) (net.Conn, error) {
	rules, err := s.door.Scanning(sandbox)
	if err != nil || rules.Files.Off() {
		return conn, err
	}
	keep, giveBack := 0, func() {}
	if rules.Files.Secrets == dlp.Block || rules.Files.Personal == dlp.Block {
		keep = int(min(2*min(max(size, 0), maxWhole)+4<<10, maxWhole)) // with what is around the frames; the guest says the size
		if giveBack, err = s.hold(ctx, keep+lastFrame); err != nil {   // a guest that sends slowly has it kept for long
			return nil, err
		}
	}
	f := s.newFlow(conn, rules.Files, sandbox, admission.PlaceFiles, path)
	f.awaitBytes(keep)
	f.giveBack = giveBack
	f.refusal = &channel.Reply{
		Code: channel.CodePermission, Error: "the file has what looks like a secret or personal data, which the policy's secret_scanning.files blocks; cofferdam why tells more",
	}
	return f, nil
}
