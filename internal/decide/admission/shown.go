package admission

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Show implements Door.
func (c *Controller) Show(ctx context.Context, s door.Showing) error {
	t, err := c.admitTenant(ctx, s.Sandbox)
	if err != nil {
		return err
	}
	switch {
	case s.Kind != door.ShownMetadata && s.Kind != door.ShownOutline && s.Kind != door.ShownRelayed:
		return fault.Invalid("nothing of the kind %q is shown", redact.Cut(s.Kind, 80))
	case !hexDigest.MatchString(s.SHA256) || s.File == "" || len(s.File) > 512 || s.Size < 0:
		return fault.Invalid("%q can't be shown without its name and the sha256 of its bytes", redact.Cut(s.File, 80))
	case s.Package.Name != "" && !pkgref.IsCanonicalName(s.Package.Ecosystem, s.Package.Name):
		return fault.Invalid("metadata is shown by its package's canonical name, not by %q", redact.Cut(s.Package.String(), 200))
	}
	r := audit.Record{
		Kind: audit.KindPackage, Outcome: audit.Shown, File: s.File, SourceURL: redact.Cut(s.SourceURL, 2_048), SHA256: s.SHA256, Size: s.Size,
		Detail: map[string]string{records.DetailKind: s.Kind},
	}
	records.SetRef(&r, s.Package)
	return t.book.Show(ctx, r)
}

// Asking implements Door.
func (c *Controller) Asking(ctx context.Context, q door.Question) error {
	t, err := c.admitTenant(ctx, q.Sandbox)
	if err != nil {
		return err
	}
	r := audit.Record{Kind: audit.KindPackage, Outcome: audit.Asked, File: q.File, SourceURL: q.URL}
	records.SetRef(&r, q.Package)
	return t.book.Ask(ctx, r)
}

// shownPage is the record of a page that is shown whole.
func shownPage(ask door.IndexAsk) audit.Record {
	r := audit.Record{
		Kind: audit.KindPackage, Outcome: audit.Shown, SourceURL: redact.Cut(ask.SourceURL, 2_048),
		Detail: map[string]string{records.DetailKind: door.ShownIndex, records.DetailIndex: ask.IndexDigest},
	}
	records.SetRef(&r, ask.Package)
	return r
}
