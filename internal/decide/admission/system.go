package admission

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// SystemEcosystem is what records say of packages of the distribution. No policy lists
// them, and no gateway serves them: the daemon brings them into the sandboxes of builds.
const SystemEcosystem = "debian"

const detailArchitecture = "architecture"

// Distribution decides about packages of the distribution, and records them.
type Distribution struct {
	tenants *tenants
}

// SystemPackage is one, as a file whose digest the distribution has signed.
type SystemPackage struct {
	Name         string
	Version      string
	Architecture string
	File         string
	SHA256       string // hexadecimal
	Size         int64
	URL          string       // without credentials
	Asked        bool         // the build named it; else another one needs it
	Brings       []pkgref.Ref // releases of the ecosystems' that lie in it
}

// AdmitSystem decides about what a build names, before anything of it is fetched. A
// refusal is on record, and a fault.ErrForbidden.
func (d *Distribution) AdmitSystem(ctx context.Context, sandbox, build string, names []string) error {
	t, err := d.openTenant(ctx, sandbox)
	if err != nil {
		return err
	}
	decided := t.policy().System()
	if decided.Allowed() {
		return nil
	}
	var first audit.Record
	for _, name := range names {
		name, version, _ := strings.Cut(name, "=")
		r := systemRecord(audit.Blocked, build, decided, SystemPackage{Name: name, Version: version})
		records.Explain(&r, decided)
		if r, err = t.book.Refuse(ctx, r); err != nil {
			return err
		}
		if first.RequestID == "" {
			first = r
		}
	}
	return fault.New(fault.ErrForbidden, "%s (rule %s, request %s)", decided.Reason, decided.Rule, first.RequestID)
}

// ServeSystem records that a file is brought into the sandbox, before its first byte is.
func (d *Distribution) ServeSystem(ctx context.Context, sandbox, build string, p SystemPackage) error {
	t, err := d.openTenant(ctx, sandbox)
	if err != nil {
		return err
	}
	decided := t.policy().System()
	if !decided.Allowed() {
		return fault.New(fault.ErrForbidden, "%s (rule %s)", decided.Reason, decided.Rule)
	}
	if !hexDigest.MatchString(p.SHA256) {
		return fault.Invalid("%s can't be brought without its sha256", redact.Cut(p.File, 200))
	}
	r, err := t.book.Append(ctx, systemRecord(audit.Served, build, decided, p))
	if err == nil {
		t.system.takeRecord(t.served, r)
	}
	return err
}

// SystemInstalled records that the sandbox says that a package is installed, which was
// brought.
func (d *Distribution) SystemInstalled(ctx context.Context, sandbox, build string, p SystemPackage) error {
	t, err := d.tenants.getTenant(sandbox) // also of a run that is cut: it has happened
	if err != nil {
		return err
	}
	r := systemRecord(audit.Installed, build, t.policy().System(), p)
	r.GuestClaimed = true
	_, err = t.book.Append(ctx, r)
	return err
}

func (d *Distribution) openTenant(ctx context.Context, sandbox string) (*tenant, error) {
	t, err := d.tenants.getTenant(sandbox)
	if err != nil {
		return nil, err
	}
	return t, t.book.Open(ctx)
}

func systemRecord(outcome audit.Outcome, build string, d policy.Decision, p SystemPackage) audit.Record {
	r := audit.Record{
		Kind: audit.KindPackage, Outcome: outcome, Ecosystem: SystemEcosystem, Package: redact.Cut(p.Name, 200), InstalledVersion: redact.Cut(p.Version, 200),
		File: redact.Cut(p.File, 300), SourceURL: redact.Cut(p.URL, 2_048), SHA256: p.SHA256, Size: p.Size,
		ResolvedBy: string(d.ResolvedBy), Rule: d.Rule, Reason: d.Reason, Detail: map[string]string{detailBuild: build},
	}
	if p.Architecture != "" {
		r.Detail[detailArchitecture] = p.Architecture
	}
	if !p.Asked && outcome != audit.Blocked {
		r.Reason += "; another package needs it"
	}
	if len(p.Brings) > 0 {
		var texts []string
		for _, ref := range p.Brings {
			texts = append(texts, ref.String())
		}
		r.Detail[records.DetailBundled] = redact.Cut(strings.Join(texts, ", "), 32_768)
	}
	return r
}

// system is what one sandbox was brought of the distribution, or one that it is a copy of.
type system struct {
	mu       sync.Mutex        // guards what follows
	policies map[string]string // under which, with a package each
}

// takeRecord notes a record of it.
func (s *system) takeRecord(served *records.Deliveries, r audit.Record) {
	if r.Outcome != audit.Served {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.policies == nil {
		s.policies = map[string]string{}
	}
	outer := records.RefOf(r).String()
	s.policies[r.Policy] = outer
	for text := range strings.SplitSeq(r.Detail[records.DetailBundled], ", ") {
		ecosystem, rest, _ := strings.Cut(text, " ")
		name, version, _ := strings.Cut(rest, " ")
		if inner, err := pkgref.New(pkgref.Ecosystem(ecosystem), name, version); err == nil && version != "" {
			served.Bring(inner, outer)
		}
	}
}

// recheckSystem refuses a copy whose policy does not let in what it has of the
// distribution under another one.
func (t *tenant) recheckSystem(ctx context.Context) error {
	own := t.policy()
	decided := own.System()
	if decided.Allowed() {
		return nil
	}
	t.system.mu.Lock()
	under := maps.Clone(t.system.policies)
	t.system.mu.Unlock()
	delete(under, own.Digest())
	if len(under) == 0 {
		return nil
	}
	found := slices.Sorted(maps.Values(under))[0]
	ref := strings.Fields(found)
	r := systemRecord(audit.Blocked, "", decided, SystemPackage{Name: ref[1], Version: ref[len(ref)-1]})
	r.Detail = map[string]string{records.DetailEvent: eventRecheck}
	r, err := t.book.Refuse(ctx, r)
	if err != nil {
		return err
	}
	return fault.New(fault.ErrForbidden, "%s is in it, and would be refused today: %s (rule %s, request %s)", found, decided.Reason, decided.Rule, r.RequestID)
}
