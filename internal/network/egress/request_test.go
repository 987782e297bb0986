package egress_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress"
)

func TestRequest(t *testing.T) {
	dial := uplink(t, &fakeDoor{}, egress.Limits{})
	asked := &channel.Request{Items: []channel.RequestItem{
		{Ecosystem: "python", Name: "a"}, {Ecosystem: "python", Name: "b"}, {Ecosystem: "node", Name: "c"},
	}}
	want := `allowed  python a sb-1: because\x1b[31m
waits    python b sb-1: because\x1b[31m
         request ap-test; a person approves it on the host: cofferdam approvals approve ap-test
refused  node c sb-1: because\x1b[31m
What waits can be installed once it is approved; the install itself waits or fails as the policy says.
`
	if r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenRequest, Request: asked}); !r.OK || r.Text != want {
		t.Errorf("%+v", r)
	}
	var got []door.Proposed
	r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenRequest, Request: asked, JSON: true})
	if err := json.Unmarshal([]byte(r.Text), &got); err != nil || len(got) != 3 || got[1].Approval != "ap-test" {
		t.Errorf("%s: %v", r.Text, err)
	}
	asked.Because = "fail"
	if r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenRequest, Request: asked}); r.OK || !strings.Contains(r.Error, "another request") {
		t.Errorf("%+v", r)
	}
	if r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenRequest}); r.OK {
		t.Errorf("a request without packages was taken: %+v", r)
	}
}
