package admission

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// A client's store can lie on a mount and outlive the sandbox that it was filled in:
// pnpm's does, in a workspace. What the client installs from it later is not served
// again. So a package of which nothing was served is compared, byte for byte, with what
// was served of that release to earlier runs: the record of that says what the file is
// once it is unpacked. A store or a package that somebody changed is not that.

// mostEarlier bounds how many releases are remembered; others are not known again.
const mostEarlier = 200_000

// earlierRuns are the `served` records of all runs that say what their file consists of.
// The log is read when they are asked for first. The zero value is ready.
type earlierRuns struct {
	load  sync.Mutex // held while the log is read; taken before mu
	whole bool       // guarded by load: the log was read to its end

	mu     sync.Mutex                    // guards what follows; never held for long, for files are served meanwhile
	served map[pkgref.Ref][]audit.Record // by release; of equal files under one policy one; nil: nobody has asked
}

// take remembers a record that was just made.
func (e *earlierRuns) take(r audit.Record) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.served != nil {
		e.add(r)
	}
}

// add needs mu.
func (e *earlierRuns) add(r audit.Record) {
	if r.Detail[detailConsists] == "" {
		return
	}
	release := refOf(r).Release()
	known := e.served[release]
	if known == nil && len(e.served) >= mostEarlier {
		return
	}
	same := slices.IndexFunc(known, func(k audit.Record) bool {
		return k.Detail[detailConsists] == r.Detail[detailConsists] && k.Policy == r.Policy
	})
	if same >= 0 {
		known[same] = r
		return
	}
	e.served[release] = append(known, r)
}

// of are the records of a release.
func (e *earlierRuns) of(ctx context.Context, log audit.Log, release pkgref.Ref) ([]audit.Record, error) {
	if err := e.read(ctx, log); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.served[release]), nil
}

// read reads the log once. What is served meanwhile is taken by take.
func (e *earlierRuns) read(ctx context.Context, log audit.Log) error {
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
		e.take(r)
	}
	e.whole = true
	return nil
}

// Contents asks a guest what directories consist of: by path, the digests that the
// package there has. It has none if it can't be compared.
type Contents func(ctx context.Context, paths []string) (map[string][]string, error)

// recognise looks at the findings that nothing accounts for, and says of which of them
// an earlier run was served the very bytes. Only the host's own user's runs are asked
// about: a token is told nothing of what others were served.
func (c *Controller) recognise(ctx context.Context, t *tenant, ask Contents, news []finding) error {
	if ask == nil || t.run.Token != "" {
		return nil
	}
	known := map[int][]audit.Record{}
	var paths []string
	for i, f := range news {
		if f.how != howUnaccounted {
			continue
		}
		records, err := c.mayHave(ctx, t, f.release)
		if err != nil {
			return err
		}
		if len(records) > 0 {
			known[i] = records
			paths = append(paths, f.Path)
		}
	}
	if len(paths) == 0 {
		return nil
	}
	digests, err := ask(ctx, paths)
	if err != nil {
		return nil //nolint:nilerr // nothing is known of them, so they stay what they are
	}
	var whole []finding
	for i, records := range known {
		f := &news[i]
		at := slices.IndexFunc(records, func(r audit.Record) bool { return slices.Contains(digests[f.Path], r.Detail[detailConsists]) })
		if at < 0 {
			continue
		}
		f.how, f.served, f.recognised = howEarlier, &servedFile{record: records[at]}, true
		if records[at].Detail[detailBundled] != "" {
			whole = append(whole, *f)
		}
	}
	inside(news, whole)
	return nil
}

// inside accounts for packages that lie in the directory of one that was recognised with
// all that it brings.
func inside(news, whole []finding) {
	for i := range news {
		for _, outer := range whole {
			if news[i].how == howUnaccounted && strings.HasPrefix(news[i].Path, outer.Path+"/node_modules/") {
				news[i].how, news[i].origin, news[i].recognised = howBundled, refOf(outer.served.record).String(), true
			}
		}
	}
}

// mayHave are the earlier records of a release, as far as this run may have what they
// are about: nothing burns it by now, and what came under another policy is let in by
// this run's own.
func (c *Controller) mayHave(ctx context.Context, t *tenant, release pkgref.Ref) ([]audit.Record, error) {
	records, err := c.memory.of(ctx, c.config.Log, release)
	if err != nil || len(records) == 0 {
		return nil, err
	}
	from := t.ledger.Origin(release)
	about, err := t.known.subject(release, from)
	if err != nil {
		return nil, err
	}
	if about.Approvals, err = t.known.answers(ctx, release); err != nil {
		return nil, err
	}
	t.require(&about, release)
	judge := t.known.judge(about)
	now, law := judge.Release(release.Version), t.policy()
	return slices.DeleteFunc(records, func(r audit.Record) bool {
		if r.Policy == law.Digest() && len(law.Layers()) == 1 {
			return forGood(now)
		}
		return judge.Kept(release.Version, []string{"sha256:" + r.SHA256}).Effect != policy.Allow
	}), nil
}

// forGood tells a denial that stands whatever else this run may read, from one that is
// for want of what an earlier run under the same policy had read.
func forGood(d policy.Decision) bool {
	switch d.ResolvedBy {
	case policy.ByBlocklist, policy.ByLockfile, policy.ByCanonical:
		return d.Effect == policy.Deny
	case policy.ByAdvisory:
		return d.Effect == policy.Deny && d.Alarm
	default:
		return false
	}
}
