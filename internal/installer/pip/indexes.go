package pip

import (
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/manifest"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

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
		case table["type"] != nil:
			x.withhold(key)
		default:
			x.w.Registry(x.m.File, x.m.LineOf(key), key, table["url"])
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
		x.w.Registry(x.m.File, x.m.LineOf(key), key, one)
	}
}

func (x indexes) withhold(key string) {
	x.w.Withhold(x.m.File, x.m.LineOf(key), key, manifest.OtherRegistry)
}

// namesPublic tells of the name that clients have for the registry that they ask by themselves: the ecosystem's.
func namesPublic(name any) bool {
	text, _ := name.(string)
	return strings.EqualFold(text, pkgref.Python.Traits().OSV)
}

// registries notes those of a pyproject.toml.
func (p pyprojectReader) registries() {
	tool, x := p.document.Tool, indexes{p.w, p.m}
	x.uv(tool.UV.uvIndexes)
	x.uv(tool.UV.PIP)
	x.tables("tool.poetry.source", tool.Poetry.Source)
	x.tables("tool.pdm.source", tool.PDM.Source)
}
