package pip

import (
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/manifest"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

const otherRegistry = "the project names another registry or place that its packages come from, so that none is allowed from the public one"

// indexes notes which registries and places of files a project names: any name may be one of theirs.
type indexes struct {
	w *manifest.Wants
	m manifest.Text
}

// uvIndexes are uv's.
type uvIndexes struct {
	Index   any `toml:"index"`
	URL     any `toml:"index-url"`
	Extra   any `toml:"extra-index-url"`
	Links   any `toml:"find-links"`
	NoIndex any `toml:"no-index"`
}

func (x indexes) uv(table uvIndexes) {
	x.tables("index", table.Index)
	x.address("index-url", table.URL)
	x.address("extra-index-url", table.Extra)
	if table.Links != nil {
		x.withhold("find-links")
	}
	if table.NoIndex != nil && table.NoIndex != false {
		x.withhold("no-index")
	}
}

// tables are those of Pipenv, Poetry, PDM and uv, with a registry's address each. One that is explicit is asked for the names alone
// that say so, which are kept.
func (x indexes) tables(key string, value any) {
	list, is := value.([]any)
	if !is && value != nil {
		list = []any{value}
	}
	for _, one := range list {
		switch table, _ := one.(map[string]any); {
		case table["explicit"] == true, table["priority"] == "explicit":
			x.w.LeaveOut(x.m.File, x.m.LineOf(key), key, "it is a registry of the project's own, whose names are not allowed here")
		case table["url"] == nil && namesPublic(table["name"]): // Poetry's word for it
		case table["type"] != nil || !isPublic(table["url"]):
			x.withhold(key)
		}
	}
}

// address is an option's: one, or several.
func (x indexes) address(key string, value any) {
	list, is := value.([]any)
	if !is && value != nil {
		list = []any{value}
	}
	for _, one := range list {
		if !isPublic(one) {
			x.withhold(key)
		}
	}
}

func (x indexes) withhold(key string) { x.w.Withhold(x.m.File, x.m.LineOf(key), key, otherRegistry) }

// public is the ecosystem's name, as everybody has it.
func public() string { return strings.ToLower(pkgref.Python.Traits().OSV) }

// isPublic tells of the address of the index that the clients ask by themselves, whose host has the ecosystem's name. Pipenv writes it
// into each Pipfile.
func isPublic(address any) bool {
	text, _ := address.(string)
	return manifest.IsAt(text, public()+".org")
}

func namesPublic(name any) bool {
	text, _ := name.(string)
	return strings.EqualFold(text, public())
}

// registries notes those of a pyproject.toml.
func (p pyprojectReader) registries() {
	tool, x := p.document.Tool, indexes{p.w, p.m}
	x.uv(tool.UV.uvIndexes)
	x.uv(tool.UV.PIP)
	x.tables("tool.poetry.source", tool.Poetry.Source)
	x.tables("tool.pdm.source", tool.PDM.Source)
}
