package e2b

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
	_ "google.golang.org/protobuf/types/known/timestamppb" // the messages of files have one
)

// codec is the binary form of a call's messages. Each has one meaning, that of its
// JSON: a message that comes is turned into that, and what is answered is made of it.
// nil: the call is in JSON.
type codec struct {
	in, out protoreflect.MessageDescriptor
}

// newCodecs are those of all calls, by their paths. The messages are constants of
// this package: what is wrong with them is seen by every test.
func newCodecs() map[string]*codec {
	found := map[string]protoreflect.MessageDescriptor{}
	enums := enumerations()
	for pkg, messages := range map[string]map[string][]field{"process": processMessages(), "filesystem": filesystemMessages()} {
		file, err := protodesc.NewFile(describeFile(pkg, messages, enums[pkg]), protoregistry.GlobalFiles)
		if err != nil {
			panic(err)
		}
		for name := range messages {
			found[pkg+"."+name] = file.Messages().ByName(protoreflect.Name(name))
		}
	}
	codecs := map[string]*codec{}
	for path, both := range callMessages() {
		codecs[path] = &codec{in: found[both[0]], out: found[both[1]]}
	}
	return codecs
}

// unaryType and stream are the types of what is sent.
func (k *codec) unaryType() string {
	if k == nil {
		return typeUnary
	}
	return typeUnaryProto
}

func (k *codec) stream() string {
	if k == nil {
		return typeStream
	}
	return typeStreamProto
}

// decodeMessage reads a message that came.
func (k *codec) decodeMessage(data []byte, v any) error {
	if k == nil {
		return decodeMessage(data, v)
	}
	m := dynamicpb.NewMessage(k.in)
	if err := (proto.UnmarshalOptions{RecursionLimit: maxDepth, DiscardUnknown: true}).Unmarshal(data, m); err != nil {
		return refuseWith(codeInvalid, "the message is not the one expected: %v", err)
	}
	plain, err := protojson.Marshal(m)
	if err != nil {
		return refuseWith(codeInvalid, "the message is not the one expected: %v", err)
	}
	return decodeMessage(plain, v)
}

// The bytes that a field of a binary message takes once it is decoded, and those that each byte of a
// list of numbers takes.
const (
	perField  = 256
	perPacked = 32
)

// decodedSize is about what a binary message takes once it is decoded, beside its own bytes: its fields, and
// its text in JSON and in a struct.
func decodedSize(data []byte, of protoreflect.MessageDescriptor, depth int) int {
	size := 0
	if depth == 0 {
		size = 2 * len(data)
	}
	for len(data) > 0 && depth < maxDepth {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return size // who decodes it says what is wrong
		}
		length := protowire.ConsumeFieldValue(number, kind, data[n:])
		if length < 0 {
			return size
		}
		value, field := data[n:n+length], of.Fields().ByNumber(number)
		data = data[n+length:]
		if field == nil {
			continue // it is left out
		}
		size += perField
		if kind != protowire.BytesType {
			continue
		}
		inner, _ := protowire.ConsumeBytes(value)
		switch {
		case field.Message() != nil:
			size += decodedSize(inner, field.Message(), depth+1)
		case field.IsList() && field.Kind() != protoreflect.StringKind && field.Kind() != protoreflect.BytesKind:
			size += perPacked * len(inner)
		case field.Kind() == protoreflect.StringKind:
			size += escapedCopies * escapes(inner)
		}
	}
	return size
}

// escapedCopies is how often what escapes add to a text in JSON is in memory: where it is written, and in the buffers
// of who reads it, which grow.
const escapedCopies = 4

// escapes is how much longer a text is in JSON: a control character is six there.
func escapes(text []byte) (more int) {
	for _, b := range text {
		switch {
		case b < ' ':
			more += 5
		case b == '"', b == '\\':
			more++
		}
	}
	return more
}

// encode makes the message that answers.
func (k *codec) encode(v any) ([]byte, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode an answer: %w", err)
	}
	if k == nil {
		return plain, nil
	}
	return marshalAs(k.out, plain)
}

func marshalAs(as protoreflect.MessageDescriptor, plain []byte) ([]byte, error) {
	m := dynamicpb.NewMessage(as)
	if err := protojson.Unmarshal(plain, m); err != nil {
		return nil, fmt.Errorf("encode an answer: %w", err)
	}
	return proto.Marshal(m)
}

// output is the message of a command's output: an event with data, which is made
// without a detour, because there may be much of it.
func (k *codec) output(name string, p []byte) []byte {
	event := k.out.Fields().ByName("event")
	data := event.Message().Fields().ByName("data")
	of := data.Message().Fields().ByName(protoreflect.Name(name))
	put := func(f protoreflect.FieldDescriptor, p []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, f.Number(), protowire.BytesType), p)
	}
	return put(event, put(data, put(of, p)))
}

// encodePart encodes one element of the answer's only list, as a piece of the message: pieces in
// a row are the whole.
func (k *codec) encodePart(element any) ([]byte, error) {
	plain, err := json.Marshal(element)
	if err != nil {
		return nil, fmt.Errorf("encode an answer: %w", err)
	}
	list := k.out.Fields().Get(0)
	one, err := marshalAs(list.Message(), plain)
	if err != nil {
		return nil, err
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, list.Number(), protowire.BytesType), one), nil
}
