package e2b

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// templateIDOf is the id of the template that a token's builds of a name are of. No
// two tokens have one.
func templateIDOf(owner, name string) string {
	sum := sha256.Sum256([]byte(owner + "\x00" + name))
	return "tpl" + hex.EncodeToString(sum[:8])
}

var templateIDForm = regexp.MustCompile(`^tpl[0-9a-f]{16}$`)

func isTemplateID(s string) bool { return templateIDForm.MatchString(s) }

// buildIDOf is the id of a snapshot's, or template's, build as a UUID: clients take no
// other.
func buildIDOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	text := hex.EncodeToString(sum[:16])
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}

// buildOf is a snapshot's.
func buildOf(s sandbox.Snapshot) string {
	if s.Built != nil {
		return s.Built.Build
	}
	return buildIDOf(s.ID)
}

// checkTemplateName refuses what could be mistaken for something else.
func (c templateRoutes) checkTemplateName(ref string) error {
	if ref == "" {
		return fault.Invalid("a template that is built has a name")
	}
	if err := checkSnapshotName(ref); err != nil {
		return err
	}
	if name := nameOf(ref).name; c.isTemplate(name) || isTemplateID(name) {
		return fault.Invalid("the template's name %q stands for something else; choose another", text.Shorten(name, 80))
	}
	return nil
}

// namesOf are the names of a template's tags as they are kept.
func namesOf(name string, tags []string) ([]string, error) {
	var names []string
	for _, tag := range tags {
		if strings.Contains(tag, ":") || checkSnapshotName(name+":"+tag) != nil {
			return nil, fault.Invalid("the tag %q is not valid: 1 to 63 lower-case letters, digits, dots, dashes and underscores, the first a letter or digit", text.Shorten(tag, 80))
		}
		if kept := nameOf(name + ":" + tag).keptName(); !slices.Contains(names, kept) {
			names = append(names, kept)
		}
	}
	return names, nil
}

// tagsOf is a snapshot of a token's that tags are given to or taken from, and the name
// that they are of.
func (c templateRoutes) tagsOf(ctx context.Context, t token.Token, ref string) (*sandbox.Snapshot, string, error) {
	name := nameOf(ref).name
	if c.isTemplate(name) {
		return nil, "", fault.New(fault.ErrForbidden, "the template %s is the daemon's host's, and has no other tags", name)
	}
	of, err := c.snapshotOf(ctx, t, ref)
	if err != nil {
		return nil, "", err
	}
	if of == nil || len(of.Names()) == 0 {
		return nil, "", notFound("template", ref)
	}
	if name == of.ID || isTemplateID(name) {
		name = nameOf(of.Names()[0]).name
	}
	return of, name, nil
}

// assignTags has further tags lead to what a tag leads to.
func (c templateRoutes) assignTags(w http.ResponseWriter, r *keyedRequest) error {
	var body struct {
		Target string   `json:"target"`
		Tags   []string `json:"tags" most:"64"`
	}
	if err := readJSON(r, &body); err != nil {
		return err
	}
	of, name, err := c.tagsOf(r.Context(), r.token, body.Target)
	if err != nil {
		return err
	}
	names, err := namesOf(name, body.Tags)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fault.Invalid("there are no tags to assign")
	}
	now, err := c.cfg.Sandboxes.NameSnapshot(r.Context(), r.token.ID, of.ID, names)
	if err != nil {
		return err
	}
	if err := c.dropNameless(r, of.Built); err != nil {
		return err
	}
	return writeAnswer(r.Context(), w, http.StatusCreated, map[string]any{"buildID": buildOf(now), "tags": body.Tags})
}

// removeTags takes tags of a name. A build to which none leads any more is removed.
func (c templateRoutes) removeTags(w http.ResponseWriter, r *keyedRequest) error {
	var body struct {
		Name string   `json:"name"`
		Tags []string `json:"tags" most:"64"`
	}
	if err := readJSON(r, &body); err != nil {
		return err
	}
	if c.isTemplate(nameOf(body.Name).name) {
		return fault.New(fault.ErrForbidden, "the template %s is the daemon's host's", text.Shorten(body.Name, 80))
	}
	names, err := namesOf(nameOf(body.Name).name, body.Tags)
	if err != nil {
		return err
	}
	own, err := c.snapshots(r.Context(), r.token)
	if err != nil {
		return err
	}
	found := false
	for _, s := range own {
		if !slices.ContainsFunc(s.Names(), func(n string) bool { return slices.Contains(names, n) }) {
			continue
		}
		found = true
		if _, err := c.cfg.Sandboxes.UnnameSnapshot(r.Context(), r.token.ID, s.ID, names); err != nil {
			return err
		}
		if err := c.dropNameless(r, s.Built); err != nil {
			return err
		}
	}
	if !found {
		return notFound("tag of the template", body.Name)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// dropNameless removes the builds of a template to which no name leads any more.
func (c templateRoutes) dropNameless(r *keyedRequest, of *sandbox.Built) error {
	if of == nil {
		return nil
	}
	return c.removeBuilds(r, func(s sandbox.Snapshot) bool { return s.Built.Template == of.Template && len(s.Names()) == 0 })
}

// removeBuilds removes those of a token's built templates that it is asked for.
func (c templateRoutes) removeBuilds(r *keyedRequest, which func(s sandbox.Snapshot) bool) error {
	own, err := c.snapshots(r.Context(), r.token)
	if err != nil {
		return err
	}
	for _, s := range own {
		if s.Built == nil || !which(s) {
			continue
		}
		if err := c.cfg.Sandboxes.RemoveSnapshot(r.Context(), r.token.ID, s.ID); err != nil {
			return err
		}
	}
	return nil
}
