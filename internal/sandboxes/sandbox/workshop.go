package sandbox

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/building"
	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/commands"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal"
)

// Workshop is a sandbox in which a source distribution is built, or a package's install
// scripts run, for another one, and nothing else is done. It is thrown away.
type Workshop struct {
	m       *Manager
	sandbox *Sandbox
}

// longestWorkshop is when one ends that nobody ended.
const longestWorkshop = 15 * time.Minute

// Workshop makes a sandbox for the same owner as another one, with its template and its
// lockfiles, under a policy (see policy.Policy.Apart). There is nothing else of the other
// one in it: no mounts, no environment, none of its files. Unless the policy names an
// engine it has the strongest that this host has. It counts against the owner's quota while
// it lives.
func (m *Manager) Workshop(ctx context.Context, id string, source building.Source, p *policy.Policy) (*Workshop, error) {
	s, err := m.Get(id)
	if err != nil {
		return nil, err
	}
	var lock *lockfile.Given
	if s.info.LockDigest != "" {
		if lock, err = m.documents.givenLock(s.info.LockDigest); err != nil {
			return nil, err
		}
	}
	engine := p.Isolation()
	if engine == "" {
		engine = isolationAuto
	}
	does := "builds "
	if source.Makes == policy.KindRan {
		does = "runs the install scripts of "
	}
	kept, err := m.remover.blueprints.Load(s.info.ID)
	if err != nil {
		return nil, err
	}
	made, err := m.Create(ctx, Request{
		Run: journal.NewID("build-", 6), Task: does + source.File + " for " + s.info.Run, Template: s.info.Template, Engine: engine,
		Policy: p, PolicySource: s.info.PolicySource, Lock: lock, source: &source,
		Lifetime: Lifetime{TTL: longestWorkshop}, Owner: s.info.Owner, User: s.info.User,
		HostUID: kept.Spec.Owner.HostUID, HostGID: kept.Spec.Owner.HostGID,
	})
	if err != nil {
		return nil, err
	}
	return &Workshop{m: m, sandbox: made}, nil
}

// Info is what is known of the workshop.
func (w *Workshop) Info() Info { return w.sandbox.Info() }

// Output runs a command and returns what it wrote to standard output, of which there may
// be so many bytes, with an error too.
func (w *Workshop) Output(ctx context.Context, argv []string, most int64) ([]byte, error) {
	return w.sandbox.commands.Output(ctx, commands.Command{Argv: argv, CapBytes: most})
}

// Take copies the one file of a folder whose name has this end, and returns its name. It is
// data of somebody hostile: only of a plain file, and as many bytes as to takes.
func (w *Workshop) Take(ctx context.Context, folder, suffix string, to io.Writer) (name string, err error) {
	list, _, err := w.m.OpenFile(ctx, w.sandbox.info.ID, channel.File{Op: channel.FileList, Path: folder, Depth: 1})
	if err != nil {
		return "", err
	}
	var found []channel.FileInfo
	stop := safego.When(ctx, func() { _ = list.Close() })
	err = channel.ReadList(list, func(part []channel.FileInfo) error {
		for _, f := range part {
			if strings.HasSuffix(f.Path, suffix) {
				found = append(found, f)
			}
		}
		return nil
	})
	stop()
	_ = list.Close() // it was read
	switch {
	case err != nil:
		return "", err
	case len(found) != 1:
		return "", &building.Failure{Sentence: "the build left not one file to install, but several or none"}
	case found[0].Kind != channel.KindFile:
		return "", &building.Failure{Sentence: "what the build left is no plain file"}
	}
	file, info, err := w.m.OpenFile(ctx, w.sandbox.info.ID, channel.File{Op: channel.FileRead, Path: found[0].Path})
	if err != nil {
		return "", err
	}
	defer file.Close() //nolint:errcheck // read only
	defer safego.When(ctx, func() { _ = file.Close() })()
	if info.Kind != channel.KindFile || info.Size < 0 {
		return "", fault.New(fault.ErrUnavailable, "what the build left can't be read")
	}
	_, err = io.Copy(to, channel.NewFileReader(file, info.Size))
	return found[0].Path[strings.LastIndexByte(found[0].Path, '/')+1:], err
}

// End takes the workshop away.
func (w *Workshop) End(ctx context.Context) error {
	return w.m.Destroy(context.WithoutCancel(ctx), w.sandbox.info.ID)
}
