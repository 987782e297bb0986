package approvaltest

import (
	"context"
	"maps"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
)

// AnswerShown answers as a person does who has just looked: on the revisions at which the
// requests are now, but for those that the verdict names.
func AnswerShown(ctx context.Context, q *approval.Queue, who string, v approval.Verdict) ([]approval.Request, error) {
	shown := map[string]uint64{}
	look := func(r approval.Request) { shown[r.ID] = r.Revision }
	for _, text := range v.IDs {
		id, named, err := approval.ParseAnswerID(text)
		switch {
		case err != nil || named > 0: // Answer says what is wrong with it
		case approval.IsGroup(id):
			group, _, err := q.List(ctx, approval.Filter{Group: id, States: []approval.State{approval.Pending}})
			if err == nil {
				for _, r := range group {
					look(r)
				}
			}
		default:
			if r, err := q.Get(ctx, id); err == nil {
				look(r)
			}
		}
	}
	maps.Copy(shown, v.Revisions)
	v.Revisions = shown
	return q.Answer(ctx, who, v)
}
