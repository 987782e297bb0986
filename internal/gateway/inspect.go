package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/cache"
	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// inspectionFormat changes when what is kept of an inspection does.
const inspectionFormat = 5

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
}

// servable refuses what nobody may have.
func (d described) servable() error {
	if d.Refused != "" {
		return fault.Invalid("%s", d.Refused)
	}
	return nil
}

func (d described) size() int64 {
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
			d.Requirements = append(d.Requirements, door.Requirement{Name: r.Name, Specifier: r.Specifier, Under: r.Under, Asks: r.Asks})
			continue
		}
		name := r.Name
		if name == "" {
			name = "something"
		}
		d.Refused = "its metadata requires " + name + " from a URL or a repository, not from a registry"
	}
}

// look says what a verified file is: by its protocol's inspection, done once
// per file, or by the metadata in it.
func (g *Gateway) look(ctx context.Context, a *asked, v *verified) (described, error) {
	inspector, ok := a.source.protocol.(ecosystem.Inspector)
	if !ok {
		return g.describeBlob(a.source, a.route.Project, a.file, v.Blob)
	}
	key := g.inspectionKey(a, v)
	if d, ok := g.described.get(key); ok {
		return d, nil
	}
	if data, err := g.inspections.Get(key); err == nil {
		var d described
		if json.Unmarshal(data, &d) == nil {
			g.described.put(key, d, d.size())
			return d, nil
		}
	}
	return flight(ctx, g, "inspect "+key, func(context.Context) (described, error) {
		blob, err := g.store.Get(v.Digest()) // the guest may close its own and go
		if err != nil {
			return described{}, err
		}
		defer blob.Close() //nolint:errcheck // read only
		d, err := inspect(inspector, a, blob)
		if err != nil {
			return described{}, err
		}
		g.keepInspection(key, d)
		return d, nil
	})
}

// inspectionKey covers everything that an inspection depends on.
func (g *Gateway) inspectionKey(a *asked, v *verified) string {
	row := sha256.Sum256(a.row)
	f := a.file
	return strings.Join([]string{
		strconv.Itoa(inspectionFormat), g.cfg.Version, string(a.source.ecosystem()), v.Digest(), a.route.Project,
		f.Name, f.Version, string(f.Kind), f.Sidecar, strconv.FormatBool(f.Scripts), hex.EncodeToString(row[:]),
	}, "\x00")
}

// keepInspection keeps what was found. A full disk costs a second look.
func (g *Gateway) keepInspection(key string, d described) {
	g.described.put(key, d, d.size())
	data, err := json.Marshal(d)
	if err == nil {
		err = g.inspections.Put(key, data)
	}
	if err != nil {
		g.log.Warn("an inspection could not be kept", "error", err)
	}
}

// inspect looks into a file. That it is refused is a finding to be kept; an
// error is not.
func inspect(inspector ecosystem.Inspector, a *asked, blob *cache.Blob) (described, error) {
	found, err := inspector.Inspect(a.file, a.row, blob)
	if errors.Is(err, fault.ErrInvalid) {
		return described{Refused: sentence(err)}, nil
	}
	if err != nil {
		return described{}, err
	}
	d := described{Scripts: found.Scripts, Findings: found.Findings, Contents: found.Contents, Sum: a.file.Digest, Inside: &found.Inside}
	if w, ok := a.source.protocol.(ecosystem.Witness); ok && d.Sum == "" {
		if d.Sum, err = w.SumFile(a.file, blob); err != nil {
			return described{}, err
		}
	}
	for _, b := range found.Bundled[:min(len(found.Bundled), ecosystem.MaxBundled)] {
		d.Bundled = append(d.Bundled, strings.TrimSpace(b.Name+" "+b.Version))
	}
	d.require(found.Requirements)
	switch {
	case !a.isRelease(found.Description):
		d.Refused = "the file is that of another release than the index says"
	case a.file.Sidecar != "" && found.Sidecar != "" && found.Sidecar != a.file.Sidecar:
		d.Refused = "the metadata inside the file is not the metadata that the index offers for it"
	}
	return d, nil
}

// isRelease tells whether a file's description is of the release that was asked
// for. A file that says nothing of itself is taken for what the index says.
func (a *asked) isRelease(d ecosystem.Description) bool {
	if d.Name == "" && d.Version == "" {
		return true
	}
	return d.Name == a.route.Project && pkgref.SameVersion(a.source.ecosystem(), d.Version, a.file.Version)
}
