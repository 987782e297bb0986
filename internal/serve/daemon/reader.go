package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/confine/landlock"
	"github.com/cofferdam-dev/cofferdam/internal/kit/confine/seccomp"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/network/dialer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/cache"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/releasediff"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi"
)

// Bounds of looking into releases for a person.
const (
	readerTime   = time.Minute
	readerMemory = 192 << 20 // a goal of its Go runtime
	maxReadBack  = 16 << 20  // bytes of what it finds
)

// The descriptors that a reader inherits.
const (
	readerOutFD    = 3
	readerAfterFD  = 4
	readerBeforeFD = 5
)

// readerDocument is what the daemon tells a reader, on its standard input.
type readerDocument struct {
	Confinement confinement         `json:"confinement"`
	After       httpapi.KeptRelease `json:"after"`
	Before      httpapi.KeptRelease `json:"before,omitzero"` // none: there is none
	Path        string              `json:"path,omitempty"`
	Ecosystem   pkgref.Ecosystem    `json:"ecosystem"`
	Scripts     []string            `json:"scripts,omitempty"`
}

// readerAnswer is what a reader finds. One of them is there.
type readerAnswer struct {
	Listing *releasediff.Listing `json:"listing,omitempty"`
	Text    *releasediff.Text    `json:"text,omitempty"`
	Refused string               `json:"refused,omitempty"`
	Missing bool                 `json:"missing,omitempty"` // with Refused: there is no such file
}

// releaseReader has releases that lie in the cache looked into: by a process for each look, that has the
// two files open and nothing else of the host's, since who packed them is not trusted.
type releaseReader struct {
	d    *Daemon
	turn chan struct{} // holds one: looks come one after the other
}

func newReleaseReader(d *Daemon) *releaseReader {
	return &releaseReader{d: d, turn: make(chan struct{}, 1)}
}

// Kept tells whether the cache has the file. It is not verified: who reads it does that.
func (r *releaseReader) Kept(k httpapi.KeptRelease) bool {
	f, err := r.openCached(k)
	if err != nil {
		return false
	}
	f.Close()
	return true
}

// openCached opens a file of the cache, which is the gateway's: a link that leads out of it is not followed.
func (r *releaseReader) openCached(k httpapi.KeptRelease) (*os.File, error) {
	name, err := cache.BlobName(k.SHA256)
	if err != nil {
		return nil, err
	}
	own, err := os.OpenRoot(filepath.Join(r.d.opts.Paths.Cache(), ArtifactsDir))
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the cache can't be read")
	}
	defer own.Close() //nolint:errcheck // read only
	f, err := own.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.ErrNotFound, "the cache does not have %s any more", k.Name)
	}
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "%s can't be read in the cache", k.Name)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fault.New(fault.ErrUnavailable, "what the cache has as %s is no file", k.Name)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Look implements httpapi.Releases.
func (r *releaseReader) Look(ctx context.Context, ask httpapi.ReleaseLook) (releasediff.Listing, *releasediff.Text, error) {
	var none releasediff.Listing
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return none, nil, ctx.Err()
	}
	after, err := r.openCached(ask.After)
	if err != nil {
		return none, nil, err
	}
	defer after.Close()
	files := []*os.File{after}
	document := readerDocument{After: ask.After, Path: ask.Path, Ecosystem: ask.Ecosystem, Scripts: ask.Scripts, Confinement: r.d.gateway.bootDocument().Confinement}
	if ask.Before != nil {
		before, err := r.openCached(*ask.Before)
		if err != nil {
			return none, nil, err
		}
		defer before.Close()
		document.Before = *ask.Before
		files = append(files, before)
	}
	answer, err := r.runReader(ctx, document, files)
	switch {
	case err != nil:
		return none, nil, err
	case answer.Missing:
		return none, nil, fault.New(fault.ErrNotFound, "%s", answer.Refused)
	case answer.Refused != "":
		return none, nil, fault.Invalid("%s", answer.Refused)
	case answer.Listing != nil:
		none = *answer.Listing
	}
	return none, answer.Text, nil
}

// runReader starts a reader and reads what it finds.
func (r *releaseReader) runReader(ctx context.Context, document readerDocument, files []*os.File) (answer readerAnswer, err error) {
	ctx, cancel := context.WithTimeout(ctx, readerTime)
	defer cancel()
	in, out, err := os.Pipe()
	if err != nil {
		return answer, err
	}
	defer in.Close()
	files = append([]*os.File{out}, files...)
	start := func(attr *syscall.SysProcAttr) (*roleProcess, error) {
		return startRole(ctx, r.d, "reader", document, attr, files...)
	}
	child, err := start(dialer.Apart(os.Geteuid(), os.Getegid()))
	if dialer.Forbidden(err) && ctx.Err() == nil {
		child, err = start(&syscall.SysProcAttr{}) // the gateway's start has told of that
	}
	out.Close()
	if err != nil {
		return answer, fault.Wrap(fault.ErrUnavailable, err, "nobody can look into releases now")
	}
	data, readErr := io.ReadAll(io.LimitReader(in, maxReadBack+1))
	if len(data) > maxReadBack {
		cancel()
	}
	err = child.limited.explainEnd(child.cmd.Wait())
	if err = errors.Join(err, readErr); err != nil {
		return answer, fault.Wrap(fault.ErrUnavailable, err, "the release could not be looked into within %s and the limits of this installation", readerTime)
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return answer, fault.Wrap(fault.ErrUnavailable, err, "what was found in the release can't be read")
	}
	return answer, nil
}

// RunReader is a reader's process: it reads its document, gives up what it does not need, looks into two
// releases and says what it found.
func RunReader(boot io.Reader, log *slog.Logger) error {
	debug.SetMemoryLimit(readerMemory)
	var b readerDocument
	if err := json.NewDecoder(boot).Decode(&b); err != nil {
		return fmt.Errorf("a reader is started by the daemon only: read its document: %w", err)
	}
	out := os.NewFile(readerOutFD, "found")
	after := os.NewFile(readerAfterFD, "after")
	var before *os.File
	if b.Before.SHA256 != "" {
		before = os.NewFile(readerBeforeFD, "before")
	}
	reach := func() landlock.Reach { return landlock.Reach{} }
	if err := b.Confinement.settleRole(reach, seccomp.Enter, log); err != nil {
		return err
	}
	answer, err := lookInto(b, after, before)
	switch {
	case errors.Is(err, fault.ErrNotFound):
		answer = readerAnswer{Refused: err.Error(), Missing: true}
	case errors.Is(err, fault.ErrInvalid):
		answer = readerAnswer{Refused: err.Error()}
	case err != nil:
		return err
	}
	return errors.Join(json.NewEncoder(out).Encode(answer), out.Close())
}

func lookInto(b readerDocument, after, before *os.File) (readerAnswer, error) {
	is, err := keptFile(b.Ecosystem, b.After, after)
	if err != nil {
		return readerAnswer{}, err
	}
	var was *releasediff.Release
	if before != nil {
		kept, err := keptFile(b.Ecosystem, b.Before, before)
		if err != nil {
			return readerAnswer{}, err
		}
		was = &kept
	}
	if b.Path != "" {
		text, err := releasediff.File(was, is, b.Path)
		return readerAnswer{Text: &text}, err
	}
	starter, _ := protocolOf(b.Ecosystem).(ecosystem.Starter) // not every one knows
	list, err := releasediff.List(was, is, releasediff.Known{Starter: starter, Scripts: b.Scripts})
	return readerAnswer{Listing: &list}, err
}

// keptFile is a file whose bytes are those that were asked about.
func keptFile(of pkgref.Ecosystem, k httpapi.KeptRelease, f *os.File) (releasediff.Release, error) {
	h := sha256.New()
	size, err := io.Copy(h, f)
	if err != nil {
		return releasediff.Release{}, err
	}
	if hex.EncodeToString(h.Sum(nil)) != k.SHA256 {
		return releasediff.Release{}, fault.Invalid("what the cache has as %s is not the file that was asked about: its sha256 is another", k.Name)
	}
	return releasediff.Release{Ecosystem: of, Name: k.Name, Content: io.NewSectionReader(f, 0, size)}, nil
}
