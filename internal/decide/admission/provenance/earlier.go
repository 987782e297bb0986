package provenance

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// A client's store can lie on a mount and outlive the sandbox that it was filled in: pnpm's does,
// in a workspace. Packages that the client installs from it later are not served again. So a
// package of which nothing was served is compared, byte for byte, with what was served of that
// release to earlier runs: the record of that says what the file is once it is unpacked. A store or
// a package that somebody changed is not that.

// mostEarlier bounds how many releases are remembered; others are not known again.
const mostEarlier = 200_000

// Earlier are the `served` records of all runs that say what their file consists of.
// The log is read when they are asked for first. The zero value is ready.
type Earlier struct {
	load  sync.Mutex // held while the log is read; taken before mu
	whole bool       // guarded by load: the log was read to its end

	mu     sync.Mutex                    // guards what follows; never held for long, for files are served meanwhile
	served map[pkgref.Ref][]audit.Record // by release; of equal files under one policy one; nil: nobody has asked
}

// Take remembers a record that was just made.
func (e *Earlier) Take(r audit.Record) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.served != nil {
		e.addRecord(r)
	}
}

// addRecord needs mu.
func (e *Earlier) addRecord(r audit.Record) {
	if r.Detail[records.DetailConsists] == "" {
		return
	}
	release := records.RefOf(r).Release()
	known := e.served[release]
	if known == nil && len(e.served) >= mostEarlier {
		return
	}
	same := slices.IndexFunc(known, func(k audit.Record) bool {
		return k.Detail[records.DetailConsists] == r.Detail[records.DetailConsists] && k.Policy == r.Policy
	})
	if same >= 0 {
		known[same] = r
		return
	}
	e.served[release] = append(known, r)
}

// Of are the records of a release.
func (e *Earlier) Of(ctx context.Context, log audit.Log, release pkgref.Ref) ([]audit.Record, error) {
	if err := e.readLog(ctx, log); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.served[release]), nil
}

// readLog reads the log once. Take takes what is served meanwhile.
func (e *Earlier) readLog(ctx context.Context, log audit.Log) error {
	e.load.Lock()
	defer e.load.Unlock()
	if e.whole {
		return nil
	}
	e.mu.Lock()
	if e.served == nil {
		e.served = map[pkgref.Ref][]audit.Record{}
	}
	e.mu.Unlock()
	for r, err := range log.Records(ctx, audit.Filter{Kinds: []audit.Kind{audit.KindPackage}, Outcomes: []audit.Outcome{audit.Served}}) {
		if err != nil {
			return err
		}
		e.Take(r)
	}
	e.whole = true
	return nil
}

// recognise looks at the findings that nothing accounts for, and says of which of them
// an earlier run was served the very bytes.
func (a *Accounts) recognise(ctx context.Context, ask Contents, found []finding) error {
	if ask == nil || a.config.Earlier == nil {
		return nil
	}
	known, paths, err := a.servedEarlier(ctx, found)
	if err != nil || len(paths) == 0 {
		return err
	}
	digests, err := ask(ctx, paths)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		a.config.Logger.Warn("packages could not be compared with what earlier runs were served, and count as unaccounted for", "sandbox", a.config.Sandbox, "packages", len(paths), "err", err)
		for i := range known {
			found[i].uncompared = true
		}
		return nil
	}
	var whole []finding
	for i, served := range known {
		f := &found[i]
		at := slices.IndexFunc(served, func(r audit.Record) bool { return slices.Contains(digests[f.Path], r.Detail[records.DetailConsists]) })
		if at < 0 {
			continue
		}
		f.how, f.served, f.recognised = howEarlier, &served[at], true
		if served[at].Detail[records.DetailBundled] != "" {
			whole = append(whole, *f)
		}
	}
	inside(found, whole)
	return nil
}

// servedEarlier is what earlier runs were served of the releases that nothing accounts
// for, by the finding's index; paths are where these findings lie.
func (a *Accounts) servedEarlier(ctx context.Context, found []finding) (known map[int][]audit.Record, paths []string, err error) {
	known = map[int][]audit.Record{}
	for i, f := range found {
		if f.how != howUnaccounted {
			continue
		}
		served, err := a.config.Earlier(ctx, f.release)
		if err != nil {
			return nil, nil, err
		}
		if len(served) > 0 {
			known[i] = served
			paths = append(paths, f.Path)
		}
	}
	return known, paths, nil
}

// inside accounts for packages that lie in the directory of one that was recognised with
// all that it brings.
func inside(found, whole []finding) {
	for i := range found {
		for _, outer := range whole {
			if found[i].how == howUnaccounted && strings.HasPrefix(found[i].Path, outer.Path+"/node_modules/") {
				found[i].how, found[i].origin, found[i].recognised = howBundled, records.RefOf(*outer.served).String(), true
			}
		}
	}
}
