package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/lru"
	"github.com/cofferdam-dev/cofferdam/internal/packages/cache"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/artifacts"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/coalesce"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/memo"
)

// inspectionFormat changes when what is kept of an inspection does.
const inspectionFormat = 7

// maxInspections bounds how many inspections are kept over a restart.
const maxInspections = 50_000

// described is what a verified file, or its metadata, says. It is kept on disk
// as JSON.
type described struct {
	// Refused is why nobody may have the file, one sentence, or "".
	Refused      string             `json:"refused,omitempty"`
	Digest       string             `json:"digest,omitempty"` // of the metadata, if that was read
	Sum          string             `json:"sum,omitempty"`    // of the file in a log's own way, for lockfiles
	Requirements []door.Requirement `json:"requirements,omitempty"`
	Scripts      []string           `json:"scripts,omitempty"`
	Bundled      []string           `json:"bundled,omitempty"` // "name 1.0.0"
	Findings     []string           `json:"findings,omitempty"`
	Contents     string             `json:"contents,omitempty"` // see ecosystem.Inspection
	Inside       *ecosystem.Inside  `json:"inside,omitempty"`   // nil: it was not looked into
	// Said is what its publisher says in it.
	Said *ecosystem.Publication `json:"said,omitempty"`
}

// servable refuses what nobody may have.
func (d described) servable() error {
	if d.Refused != "" {
		return fault.Invalid("%s", d.Refused)
	}
	return nil
}

func (d described) sizeInMemory() int64 {
	data, err := json.Marshal(d)
	if err != nil {
		return 4 << 10 // not reached: strings always encode
	}
	return int64(200 + 2*len(data))
}

// require takes the requirements over. A release that requires something by URL
// is refused: no gateway serves that, and clients would try to fetch it.
func (d *described) require(reqs []ecosystem.Requirement) {
	for _, r := range reqs {
		if !r.Direct {
			d.Requirements = append(d.Requirements, door.Requirement{Name: r.Name, Specifier: r.Specifier, Under: r.Under, Asks: r.Asks, Optional: r.Optional})
			continue
		}
		name := r.Name
		if name == "" {
			name = "something"
		}
		d.Refused = "its metadata requires " + name + " from a URL or a repository, not from a registry"
	}
}

// inspections look into verified files, and keep what they find.
type inspections struct {
	artifacts    *artifacts.Artifacts
	memory       *lru.Cache[inspectionKey, described]
	findings     *memo.Findings[inspectionKey, described]
	version      string // the gateway's own
	sidecarBytes int64
}

func newInspections(cfg Config, store *cache.Store, flights *coalesce.Group, as *artifacts.Artifacts) (*inspections, error) {
	disk, err := memo.NewDisk(store, "inspections", maxInspections, memo.JSON[inspectionKey, described](), cfg.Log, "an inspection")
	if err != nil {
		return nil, err
	}
	memory := lru.New[inspectionKey, described](8 << 20)
	return &inspections{
		artifacts: as, memory: memory, version: cfg.Version, sidecarBytes: cfg.Limits.SidecarBytes,
		findings: memo.NewFindings(memory, disk, flights, func(_ inspectionKey, d described) int64 { return d.sizeInMemory() }),
	}, nil
}

// inspectFile says what a verified file is: by its protocol's inspection, done once
// per file, or by the metadata in it.
func (is *inspections) inspectFile(ctx context.Context, l located, v *artifacts.Verified) (described, error) {
	inspector, ok := l.source.Protocol.(ecosystem.Inspector)
	if !ok {
		return is.describeFile(l.source, l.route.Project, l.file, v)
	}
	return is.findings.Get(ctx, is.inspectionKeyOf(l, v), func(context.Context) (described, error) {
		own, err := is.artifacts.Again(v) // the guest may close its own and go
		if err != nil {
			return described{}, err
		}
		defer own.Close() //nolint:errcheck // read only
		return inspect(inspector, l, own)
	})
}

// inspectionKey covers everything that an inspection depends on.
type inspectionKey struct {
	version       string // the gateway's own
	ecosystem     pkgref.Ecosystem
	digest        string
	project       string
	file, release string
	kind          policy.ArtifactKind
	sidecar       string
	scripts       bool
	row           [sha256.Size]byte // of what the index says of it
}

// String implements memo.Key.
func (k inspectionKey) String() string {
	return strings.Join([]string{
		strconv.Itoa(inspectionFormat), k.version, string(k.ecosystem), k.digest, k.project,
		k.file, k.release, string(k.kind), k.sidecar, strconv.FormatBool(k.scripts), hex.EncodeToString(k.row[:]),
	}, "\x00")
}

func (is *inspections) inspectionKeyOf(l located, v *artifacts.Verified) inspectionKey {
	f := l.file
	return inspectionKey{
		version: is.version, ecosystem: l.source.Ecosystem(), digest: v.Digest(), project: l.route.Project,
		file: f.Name, release: f.Version, kind: f.Kind, sidecar: f.Sidecar, scripts: f.Scripts, row: sha256.Sum256(l.row),
	}
}

// inspect looks into a file. That it is refused is a finding to be kept; an
// error is not.
func inspect(inspector ecosystem.Inspector, l located, v *artifacts.Verified) (described, error) {
	found, err := inspector.Inspect(l.file, l.row, v)
	if errors.Is(err, fault.ErrInvalid) {
		return described{Refused: errorSentence(err)}, nil
	}
	if err != nil {
		return described{}, err
	}
	if len(found.Bundled) >= ecosystem.MaxBundled {
		found.Findings = append(slices.Clone(found.Findings), manyInside())
	}
	d := described{Scripts: found.Scripts, Findings: found.Findings, Contents: found.Contents, Sum: l.file.Digest, Inside: &found.Inside, Said: &found.Said}
	if w, ok := l.source.Protocol.(ecosystem.Witness); ok && d.Sum == "" {
		if d.Sum, err = w.SumFile(l.file, v); err != nil {
			return described{}, err
		}
	}
	for _, b := range found.Bundled[:min(len(found.Bundled), ecosystem.MaxBundled)] {
		d.Bundled = append(d.Bundled, strings.TrimSpace(b.Name+" "+b.Version))
	}
	d.require(found.Requirements)
	switch {
	case !l.isRelease(found.Description):
		d.Refused = "the file is that of another release than the index says"
	case l.file.Sidecar != "" && found.Sidecar != "" && found.Sidecar != l.file.Sidecar:
		d.Refused = "the metadata inside the file is not the metadata that the index offers for it"
	}
	return d, nil
}

// manyInside is the finding about a file whose packages inside are not all listed: what comes behind them may be
// known malware.
func manyInside() string {
	return fmt.Sprintf("it brings %d packages or more inside itself, of which the first %[1]d alone are listed and looked up as malware", ecosystem.MaxBundled)
}

// isRelease tells whether a file's description is of the release that was asked
// for. A file that says nothing of itself is taken for what the index says.
func (l located) isRelease(d ecosystem.Description) bool {
	if d.Name == "" && d.Version == "" {
		return true
	}
	return d.Name == l.route.Project && pkgref.SameVersion(l.source.Ecosystem(), d.Version, l.file.Version)
}
