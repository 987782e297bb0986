package admission

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/channel"
	"github.com/cofferdam-dev/cofferdam/internal/errand"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// Stock is what the guest says is on its disk, and what was there before.
type Stock struct {
	Found    channel.Inventory
	Template channel.Inventory // what the template brings
	// Before lay on the writable mounts before the first command. Mounts are
	// their directories.
	Before channel.Inventory
	Mounts []string
	// Contents asks the guest about directories; nil: it can't be asked.
	Contents Contents
}

// Accounted is what became of a stock.
type Accounted struct {
	// End is why the sandbox is to be ended, a sentence; "": it is not.
	End string
}

const (
	ruleUnaccounted = "packages.unaccounted"
	// claimedFields are those of an installed record that come from inside of the
	// sandbox; the others are those of the record that the file was served by.
	claimedFields = "package_name installed_version path"
	// mostAlarms of one inventory have a record of their own, the rest has one
	// together: each of them has its installed record.
	mostAlarms = 50
	// appenders write the records of a large inventory at the same time.
	appenders = 32
)

// Installed records the packages that the inventory shows and that were not
// there before, each once, joined with what was served to the sandbox; and those
// that were there before and were served to it nevertheless, as clients that
// install a tree anew ask for. One that was not served, and is not otherwise
// accounted for, is an alarm unless the policy says other: it is on the disk, and
// no record says how it got there. All of it is the guest's claim.
//
// Accounted for are packages inside of served files, copies of what the template
// brings, and packages that are written here: those whose name is a project's
// that lay on a mount before the first command, and those of a project in a
// directory of the sandbox, unless the policy's lists have the name.
func (c *Controller) Installed(ctx context.Context, sandbox string, stock Stock) (Accounted, error) {
	t, err := c.tenant(sandbox)
	if err != nil {
		return Accounted{}, err
	}
	if t.run.Plan {
		return Accounted{}, nil // what a resolver unpacked to read it is no installation
	}
	if _, err := c.admit(ctx, sandbox); err != nil {
		return Accounted{}, err
	}
	news := t.news(newShelf(stock, t.policy()))
	if err := c.recognise(ctx, t, stock.Contents, news); err != nil {
		return Accounted{}, err
	}
	news = t.once(news)
	cut := stock.Found.Truncated
	if most := c.config.Limits.Inventory; len(news) > most {
		news, cut = news[:most], true
	}
	if err := c.raise(ctx, t, news); err != nil {
		return Accounted{}, err
	}
	if err := c.recordInstalled(ctx, t, news); err != nil {
		return Accounted{}, err
	}
	if cut {
		if err := c.tooManyInstalled(ctx, t); err != nil {
			return Accounted{}, err
		}
	}
	return Accounted{End: t.ending()}, nil
}

// StockUnknown records that a sandbox's packages could not be listed after a
// command. Where the sandbox lives that is an alarm, since it may hide some.
func (c *Controller) StockUnknown(ctx context.Context, sandbox, cause string, lives bool) (Accounted, error) {
	t, err := c.tenant(sandbox)
	if err != nil {
		return Accounted{}, err
	}
	if t.run.Plan {
		return Accounted{}, nil
	}
	r := audit.Record{
		Kind: audit.KindPackage, Outcome: audit.Failed, Rule: ruleUnaccounted, GuestClaimed: true,
		Reason: "the sandbox ended before its packages were listed: " + clip(cause, 512),
	}
	if lives && t.policy().Unaccounted() != policy.UnaccountedRecord {
		r.Outcome, r.Detail = audit.Alarm, map[string]string{detailAlarm: "true"}
		r.Reason = "the sandbox does not list its packages, so nothing on its disk is accounted for: " + clip(cause, 512)
		t.mayEnd(&r)
	}
	if _, err := c.record(ctx, t, r); err != nil {
		return Accounted{}, err
	}
	t.mu.Lock()
	t.accounts.take(r)
	t.mu.Unlock()
	return Accounted{End: t.ending()}, nil
}

// MustEnd is why a sandbox is to be ended by what was found on its disk; "": it
// is not.
func (c *Controller) MustEnd(sandbox string) string {
	t, err := c.tenant(sandbox)
	if err != nil {
		return ""
	}
	return t.ending()
}

// news are the findings that may not be on record yet; of a release there may be
// several.
func (t *tenant) news(s *shelf) []finding {
	t.mu.Lock()
	defer t.mu.Unlock()
	ledger := t.projectsServed()
	var news []finding
	for _, p := range s.kept {
		if served := t.files[p.release]; served != nil {
			news = append(news, finding{shelved: p, served: served})
		}
	}
	for _, p := range s.found {
		f := t.account(s, ledger, p)
		if !t.accounts.recorded[f.key()] && !t.accounts.known[placed{p.release, p.Path}] {
			news = append(news, f)
		}
	}
	return news
}

// once leaves out what is on record, or twice among the findings.
func (t *tenant) once(news []finding) []finding {
	t.mu.Lock()
	defer t.mu.Unlock()
	seen := map[entryKey]bool{}
	return slices.DeleteFunc(news, func(f finding) bool {
		if f.recognised {
			t.accounts.known[placed{f.release, f.Path}] = true
		}
		key := f.key()
		if seen[key] || t.accounts.recorded[key] {
			return true
		}
		seen[key] = true
		return false
	})
}

// projectsServed are the projects of which something was served; t.mu is held.
func (t *tenant) projectsServed() map[pkgref.Ref]*servedFile {
	names := map[pkgref.Ref]*servedFile{}
	for ref, f := range t.files {
		names[ref.Project()] = f
	}
	return names
}

// account says where a package came from; t.mu is held. A directory without a
// version is of a package that was served, if one of its name was: clients that
// are stopped leave such.
func (t *tenant) account(s *shelf, names map[pkgref.Ref]*servedFile, p shelved) finding {
	f := finding{shelved: p, served: t.files[p.release]}
	if f.served == nil && p.release.Version == "" {
		if f.served = names[p.release.Project()]; f.served != nil {
			f.ref = refOf(f.served.record)
			f.release = f.ref.Release()
		}
	}
	switch outer, inside := t.brought[p.release]; {
	case f.served != nil:
		f.how = howServed
	case inside:
		f.how, f.origin = howBundled, outer
	case s.template[p.release]:
		f.how, f.origin = howTemplate, "the template"
	case s.isLocal(p):
		f.how, f.origin = howLocal, p.From
	case s.isUncertain(p):
		f.how = howUncertain
	default:
		f.how = howUnaccounted
	}
	return f
}

// raise records alarms for what is not accounted for, before the installed
// records: those are what tells that it was done.
func (c *Controller) raise(ctx context.Context, t *tenant, news []finding) error {
	if t.policy().Unaccounted() == policy.UnaccountedRecord {
		return nil
	}
	var left int
	var told []finding
	t.mu.Lock()
	for _, f := range news {
		if f.how != howUnaccounted || t.accounts.alarmed[f.release] {
			continue
		}
		if len(told) == mostAlarms {
			left++
			continue
		}
		told = append(told, f)
	}
	t.mu.Unlock()
	for _, f := range told {
		if err := c.alarm(ctx, t, f.alarm()); err != nil {
			return err
		}
	}
	if left == 0 {
		return nil
	}
	return c.alarm(ctx, t, audit.Record{
		Kind: audit.KindPackage, Outcome: audit.Alarm, Rule: ruleUnaccounted, GuestClaimed: true, Count: left,
		Reason: fmt.Sprintf("%d more packages are on the sandbox's disk that were never served to it; their installed records name them", left),
		Detail: map[string]string{detailAlarm: "true", detailUnaccounted: "true"},
	})
}

func (c *Controller) alarm(ctx context.Context, t *tenant, r audit.Record) error {
	t.mayEnd(&r)
	r, err := c.record(ctx, t, r)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.accounts.take(r)
	return nil
}

// recordInstalled appends the findings' records; of many, several at a time.
// After a failure no more are begun.
func (c *Controller) recordInstalled(ctx context.Context, t *tenant, news []finding) error {
	workers := appenders
	if len(news) <= 2*appenders {
		workers = 1
	}
	failed := make(chan error, workers)
	todo := make(chan finding)
	var group sync.WaitGroup
	for range workers {
		errand.In(&group, func() {
			for f := range todo {
				if err := errand.Try(func() error { return c.recordOne(ctx, t, f) }); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	var err error
feed:
	for _, f := range news {
		select {
		case todo <- f:
		case err = <-failed:
			break feed
		}
	}
	close(todo)
	group.Wait()
	close(failed)
	return cmp.Or(err, <-failed)
}

func (c *Controller) recordOne(ctx context.Context, t *tenant, f finding) error {
	r := f.record()
	if f.how == howUnaccounted && t.policy().Unaccounted() != policy.UnaccountedRecord {
		r.Detail[detailAlarm] = "true"
	}
	r, err := c.record(ctx, t, r)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.accounts.take(r)
	return nil
}

// tooManyInstalled records that not all is on record. Under a policy that ends
// sandboxes for what is not accounted for it ends this one.
func (c *Controller) tooManyInstalled(ctx context.Context, t *tenant) error {
	r := audit.Record{
		Kind: audit.KindPackage, Outcome: audit.Exceeded, Rule: "quota.inventory", GuestClaimed: true,
		Reason: "the sandbox lists more packages than are recorded at one time; the rest is not recorded",
	}
	if t.mayEnd(&r); r.Detail[detailEnds] != "" {
		t.mu.Lock()
		t.accounts.take(r)
		t.mu.Unlock()
	}
	_, err := c.refuse(ctx, t, r)
	return err
}
