package e2b_test

import (
	"slices"
	"testing"
)

// TestQuestionsAboutTags: they are counted, looked up, told in pages, and lead to their builds.
func TestQuestionsAboutTags(t *testing.T) {
	t.Parallel()
	h := newWorkshop(t)
	a, _ := h.build("app:v1", `{"fromImage":"e2bdev/base"}`)
	b, _ := h.build("app", `{"fromTemplate":"app:v1"}`)
	var count struct{ Total int }
	if h.must(200, &count, h.ann, "GET /templates/"+a.TemplateID+"/tags/count", ""); count.Total != 2 {
		t.Errorf("%+v", count)
	}
	for tag, want := range map[string]bool{"v1": true, "latest": true, "v2": false} {
		var got struct {
			Exists        bool
			NormalizedTag string
		}
		if h.must(200, &got, h.ann, "GET /templates/app/tags/exists?tag="+tag, ""); got.Exists != want || got.NormalizedTag == "" || got.NormalizedTag == "latest" {
			t.Errorf("%s: %+v", tag, got)
		}
	}
	h.refused(400, "no tag's name", h.ann, "GET /templates/app/tags/exists", "")
	type assigned struct{ AssignmentID, BuildID, AssignedAt, BuildCreatedAt, BuildFinishedAt string }
	var groups struct {
		Tags []struct {
			Tag         string
			Assignments []assigned
			HasMore     bool
		}
		NextCursor *string
	}
	var got []string
	for query := "?sort=name_asc&tagsLimit=1"; ; query = "?sort=name_asc&tagsLimit=1&tagsCursor=" + *groups.NextCursor {
		groups.NextCursor = nil
		h.must(200, &groups, h.ann, "GET /templates/app/tags/groups"+query, "")
		for _, g := range groups.Tags {
			got = append(got, g.Tag+" "+g.Assignments[0].BuildID)
		}
		if groups.NextCursor == nil {
			break
		}
	}
	if want := []string{"default " + b.BuildID, "v1 " + a.BuildID}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	h.refused(400, "latest_asc", h.ann, "GET /templates/app/tags/groups?sort=size", "")
	var one struct {
		Data       []assigned
		NextCursor *string
	}
	if h.must(200, &one, h.ann, "GET /templates/app/tags/v1/assignments", ""); len(one.Data) != 1 || one.Data[0].BuildID != a.BuildID || !isUUID(one.Data[0].AssignmentID) || one.NextCursor != nil {
		t.Errorf("%+v", one)
	}
	for _, path := range []string{"/tags/count", "/tags/exists?tag=v1", "/tags/groups", "/tags/v1/assignments"} {
		h.refused(404, "no template", h.bob, "GET /templates/"+a.TemplateID+path, "")
	}
	h.refused(501, "this server has no", h.ann, "GET /templates/app/tags/sizes", "")
	var defaults []struct{ TemplateID string }
	if h.must(200, &defaults, h.ann, "GET /default-templates", ""); len(defaults) == 0 || slices.ContainsFunc(defaults, func(d struct{ TemplateID string }) bool { return d.TemplateID == a.TemplateID }) {
		t.Errorf("%+v", defaults)
	}
}
