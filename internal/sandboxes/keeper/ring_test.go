package keeper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// readAll reads a cursor to the end: stdout's and stderr's bytes, and gaps.
func readAll(t *testing.T, c *cursor) (out, errs []byte, gaps int64) {
	t.Helper()
	buf := make([]byte, 1000)
	for {
		got, err := c.nextChunk(context.Background(), buf)
		if errors.Is(err, io.EOF) {
			return out, errs, gaps
		}
		if err != nil {
			t.Fatal(err)
		}
		gaps += got.gap
		switch got.kind {
		case channel.FrameStdout:
			out = append(out, buf[:got.n]...)
		case channel.FrameStderr:
			errs = append(errs, buf[:got.n]...)
		default: // a gap has no kind
		}
	}
}

func TestRingDropsTheOldestWithoutReaders(t *testing.T) {
	r := newRing(minRing, nil)
	var sent []byte
	for i := range 3000 {
		line := fmt.Appendf(nil, "line %d\n", i)
		sent = append(sent, line...)
		r.append(channel.FrameStdout, line)
	}
	r.closeRing()
	c, err := r.attach(0)
	if err != nil {
		t.Fatal(err)
	}
	out, _, gaps := readAll(t, c)
	if want := sent[len(sent)-minRing:]; !bytes.Equal(out, want) {
		t.Errorf("kept %d bytes, not the newest %d", len(out), minRing)
	}
	if gaps+int64(len(out)) != int64(len(sent)) {
		t.Errorf("a gap of %d and %d bytes are not the %d that were sent", gaps, len(out), len(sent))
	}
}

func TestRingWaitsForItsSlowestReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(minRing, nil)
		slow, _ := r.attach(0)
		fast, _ := r.attach(0)
		sent := bytes.Repeat([]byte("0123456789abcdef"), minRing)
		go func() {
			r.append(channel.FrameStdout, sent)
			r.closeRing()
		}()
		buf := make([]byte, minRing)
		if got, err := fast.nextChunk(t.Context(), buf); err != nil || got.n == 0 {
			t.Fatal(got, err)
		}
		synctest.Wait()
		if n := r.endOffset(); n != minRing {
			t.Errorf("%d bytes went in though a reader has read none of %d", n, minRing)
		}
		fast.detach()
		synctest.Wait()
		if n := r.endOffset(); n != minRing {
			t.Errorf("%d bytes went in after the fast reader left", n)
		}
		out, _, gaps := readAll(t, slow)
		if gaps != 0 || !bytes.Equal(out, sent) {
			t.Errorf("the slow reader got %d of %d bytes, gaps of %d", len(out), len(sent), gaps)
		}
	})
}

func TestRingGoesOnWhenTheSlowReaderLeavesOrTheSourceIsGone(t *testing.T) {
	for name, release := range map[string]func(*ring, *cursor){
		"detach": func(_ *ring, c *cursor) { c.detach() },
		"loosen": func(r *ring, _ *cursor) { r.loosen() },
		"close":  func(r *ring, _ *cursor) { r.closeRing() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRing(minRing, nil)
				c, _ := r.attach(0)
				done := make(chan struct{})
				go func() {
					r.append(channel.FrameStderr, make([]byte, 10*minRing))
					close(done)
				}()
				synctest.Wait()
				select {
				case <-done:
					t.Fatal("control: it did not wait")
				default:
				}
				release(r, c)
				<-done
			})
		})
	}
}

func TestRingReaderGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(0, nil)
		c, _ := r.attach(0)
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		if _, err := c.nextChunk(ctx, make([]byte, 1)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// TestRingMemory: a byte of each stream in turn must not cost a segment each.
func TestRingMemory(t *testing.T) {
	r := newRing(minRing, nil)
	for i := range 100_000 {
		r.append([]channel.FrameType{channel.FrameStdout, channel.FrameStderr}[i%2], []byte{byte(i)})
	}
	if len(r.segments) > minRing/segmentCost || int64(len(r.buf)) > minRing {
		t.Errorf("%d segments, %d bytes", len(r.segments), len(r.buf))
	}
	r.closeRing()
	c, _ := r.attach(0)
	out, errs, gaps := readAll(t, c)
	if int64(len(out)+len(errs))+gaps != 100_000 {
		t.Errorf("%d + %d bytes and a gap of %d are not 100000", len(out), len(errs), gaps)
	}
}

func TestRingKeepsLittleOfLittle(t *testing.T) {
	r := newRing(maxRing, nil)
	r.append(channel.FrameStdout, []byte("hello"))
	r.closeRing()
	if len(r.buf) != 5 {
		t.Errorf("%d bytes for 5", len(r.buf))
	}
	for _, offset := range []int64{-1, 6} {
		if _, err := r.attach(offset); err == nil {
			t.Errorf("offset %d was accepted", offset)
		}
	}
}

// TestRingAgainstAModel: the model keeps everything; what a ring hands out is
// the model's, or a gap, and each byte keeps its stream.
func TestRingAgainstAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRing(rapid.Int64Range(minRing, 3*minRing).Draw(t, "size"), nil)
		var bytesOf []byte
		var kindOf []channel.FrameType
		check := func(offset int64) {
			c, err := r.attach(offset)
			if err != nil {
				t.Fatal(err)
			}
			defer c.detach()
			buf := make([]byte, rapid.IntRange(1, 5000).Draw(t, "buf"))
			for at := offset; at < int64(len(bytesOf)); {
				got, err := c.nextChunk(context.Background(), buf)
				if err != nil {
					t.Fatal(err)
				}
				for i := range got.n {
					if buf[i] != bytesOf[at+int64(i)] || got.kind != kindOf[at+int64(i)] {
						t.Fatalf("byte %d is not what was appended", at+int64(i))
					}
				}
				at += int64(got.n) + got.gap
			}
		}
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			kind := rapid.SampledFrom([]channel.FrameType{channel.FrameStdout, channel.FrameStderr}).Draw(t, "kind")
			p := bytes.Repeat([]byte{byte(len(bytesOf)), byte(len(bytesOf) >> 8), 'x'}, rapid.IntRange(0, 2000).Draw(t, "thirds"))
			r.append(kind, p)
			bytesOf = append(bytesOf, p...)
			for range p {
				kindOf = append(kindOf, kind)
			}
			check(rapid.Int64Range(0, int64(len(bytesOf))).Draw(t, "offset"))
		}
		r.closeRing()
		check(0)
	})
}
