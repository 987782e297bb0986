package e2b

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// tagInfo is a tag of a template or of a snapshot's name. Its build is what it leads to.
type tagInfo struct {
	Tag       string `json:"tag"`
	BuildID   string `json:"buildID"`
	CreatedAt stamp  `json:"createdAt"`
}

// listTags lists the tags of a template, which has one, or of the name of a snapshot or of a template that was
// built. A tag leads to one build; which ones it led to before is not kept.
func (c templateRoutes) listTags(r *keyedRequest) ([]tagInfo, error) {
	ref := r.PathValue("id")
	own, err := c.snapshots(r.Context(), r.token)
	if err != nil {
		return nil, err
	}
	name := nameOf(ref).name
	if of := findSnapshot(own, ref); of != nil && len(of.Names()) > 0 { // it may be called by an id
		name = nameOf(of.Names()[0]).name
	}
	all := []tagInfo{}
	for _, s := range own {
		for _, called := range s.Names() {
			if tag := nameOf(called); tag.name == name {
				all = append(all, tagInfo{Tag: tag.tagName(), BuildID: buildOf(s), CreatedAt: stamp(s.Created)})
			}
		}
	}
	if len(all) == 0 {
		t, err := c.findTemplate(r, ref)
		if err != nil {
			return nil, err
		}
		all = append(all, tagInfo{Tag: defaultTag, BuildID: t.BuildID, CreatedAt: t.CreatedAt})
	}
	return all, nil
}

// assignment tells that a tag leads to a build. When it was given to it is not kept: the times are the
// build's.
type assignment struct {
	AssignmentID    string `json:"assignmentID"`
	BuildID         string `json:"buildID"`
	AssignedAt      stamp  `json:"assignedAt"`
	BuildCreatedAt  stamp  `json:"buildCreatedAt"`
	BuildFinishedAt stamp  `json:"buildFinishedAt"`
}

func assignmentOf(t tagInfo) assignment {
	return assignment{
		AssignmentID: buildIDOf(t.Tag + "\x00" + t.BuildID), BuildID: t.BuildID,
		AssignedAt: t.CreatedAt, BuildCreatedAt: t.CreatedAt, BuildFinishedAt: t.CreatedAt,
	}
}

// tagGroup is a tag with what it leads to.
type tagGroup struct {
	Tag         string       `json:"tag"`
	Assignments []assignment `json:"assignments"`
	HasMore     bool         `json:"hasMore"`
}

// partOfTags are further questions about a template's tags.
func (c templateRoutes) partOfTags(w http.ResponseWriter, r *keyedRequest) error {
	all, err := c.listTags(r)
	if err != nil {
		return err
	}
	switch r.PathValue("part") {
	case "count":
		return writeAnswer(r.Context(), w, http.StatusOK, map[string]int{"total": len(all)})
	case "exists":
		return tellTag(w, r, all)
	case "groups":
		return groupTags(w, r, all)
	}
	return c.unknown(w, r)
}

// tellTag tells whether a tag is among them.
func tellTag(w http.ResponseWriter, r *keyedRequest, all []tagInfo) error {
	tag := r.URL.Query().Get("tag")
	if tag == "" || strings.Contains(tag, ":") {
		return fault.Invalid("tag is %q, which is no tag's name", text.Shorten(tag, 80))
	}
	asked := nameOf("x:" + tag).tagName()
	there := slices.ContainsFunc(all, func(t tagInfo) bool { return t.Tag == asked })
	return writeAnswer(r.Context(), w, http.StatusOK, map[string]any{"exists": there, "normalizedTag": asked})
}

// groupTags tells a page of the tags with what they lead to.
func groupTags(w http.ResponseWriter, r *keyedRequest, all []tagInfo) error {
	q := r.URL.Query()
	if search := q.Get("search"); search != "" {
		all = slices.DeleteFunc(all, func(t tagInfo) bool { return !strings.Contains(t.Tag, search) })
	}
	key := func(t tagInfo) string { return sortKey(time.Time(t.CreatedAt), t.Tag) }
	descending := true
	switch order := q.Get("sort"); order {
	case "", "latest_desc":
	case "latest_asc":
		descending = false
	case "name_asc", "name_desc":
		key, descending = func(t tagInfo) string { return t.Tag }, order == "name_desc"
	default:
		return fault.Invalid("sort is %q; it may be latest_asc, latest_desc, name_asc or name_desc", text.Shorten(order, 20))
	}
	slices.SortFunc(all, func(a, b tagInfo) int {
		if descending {
			a, b = b, a
		}
		return cmp.Compare(key(a), key(b))
	})
	p, err := tagPage(q, "tagsLimit", "tagsCursor", 25)
	if err != nil {
		return err
	}
	page, next := pageFrom(p, all, key, descending)
	groups := make([]tagGroup, 0, len(page))
	for _, t := range page {
		groups = append(groups, tagGroup{Tag: t.Tag, Assignments: []assignment{assignmentOf(t)}})
	}
	return writeAnswer(r.Context(), w, http.StatusOK, map[string]any{"tags": groups, "nextCursor": orNull(next)})
}

// assignments tells what a tag leads to, which is one build.
func (c templateRoutes) assignments(w http.ResponseWriter, r *keyedRequest) error {
	all, err := c.listTags(r)
	if err != nil {
		return err
	}
	tag, found := nameOf("x:"+r.PathValue("tag")).tagName(), []assignment{}
	for _, t := range all {
		if t.Tag == tag && r.URL.Query().Get("cursor") == "" {
			found = append(found, assignmentOf(t))
		}
	}
	return writeAnswer(r.Context(), w, http.StatusOK, map[string]any{"data": found, "nextCursor": nil})
}

// tagPage reads a page's parameters by the names that they have here.
func tagPage(q url.Values, limit, cursor string, usual int) (listPage, error) {
	as := url.Values{"limit": {cmp.Or(q.Get(limit), strconv.Itoa(usual))}, "nextToken": {q.Get(cursor)}}
	return pageOf(as)
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
