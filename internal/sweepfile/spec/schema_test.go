package spec_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/spec"
	"github.com/berthml/berth/internal/sweepfile/spec/document"
)

// schema compiles the schema, which is itself valid under its draft.
func schema(t require.TestingT) *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(spec.Schema))
	require.NoError(t, err)

	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("sweep.json", doc))

	compiled, err := compiler.Compile("sweep.json")
	require.NoError(t, err)

	return compiled
}

// plain is a document as JSON, without null members: these count as absent. ok
// is false for an unreadable one.
func plain(t require.TestingT, doc string) (v any, ok bool) {
	root, err := document.ParseYAML([]byte(doc))
	if err != nil {
		return nil, false
	}

	data, err := json.Marshal(asJSON(root))
	require.NoError(t, err)

	v, err = jsonschema.UnmarshalJSON(bytes.NewReader(data))
	require.NoError(t, err)

	return v, true
}

func asJSON(n *document.Node) any {
	switch n.Kind {
	case document.Object:
		object := map[string]any{}

		for i := range n.Fields {
			if f := &n.Fields[i]; f.Value.Kind != document.Null {
				object[f.Name] = asJSON(&f.Value)
			}
		}

		return object
	case document.List:
		items := []any{}
		for i := range n.Items {
			items = append(items, asJSON(&n.Items[i]))
		}

		return items
	case document.Number:
		number, err := strconv.ParseFloat(n.Text, 64)
		if err != nil {
			return n.Text
		}

		return number
	case document.Bool:
		return n.Text == "true"
	case document.Null:
		return nil
	default:
		return n.Text
	}
}

// Whatever is wrong in form is wrong for an editor, too.
func TestSchema_RefusesWhatIsWrongInForm(t *testing.T) {
	t.Parallel()

	form := []string{"E_UNKNOWN_FIELD", "E_TYPE", "E_VALUE", "E_ALGO", "E_DIRECTION", "E_UNIT", "E_VERSION", "E_RETRIES"}
	refused := 0

	for _, test := range bad {
		wrong := slices.ContainsFunc(test.want, func(want string) bool {
			code, pointer, _ := strings.Cut(want, " ")

			return slices.Contains(form, code) && pointer != ""
		})

		doc, ok := plain(t, test.doc)
		if !wrong || !ok {
			continue
		}

		refused++

		require.Error(t, schema(t).Validate(doc), "%s: %s", test.name, test.doc)
	}

	require.GreaterOrEqual(t, refused, 20)
}

// Every member of a spec is in the schema, and the other way round.
func TestSchema_KnowsEveryMember(t *testing.T) {
	t.Parallel()

	var doc map[string]any

	require.NoError(t, json.Unmarshal(spec.Schema, &doc))
	requireMembers(t, reflect.TypeFor[berth.Spec](), doc, doc["$defs"].(map[string]any), "") //nolint:forcetypeassert // it is one of ours
}

func requireMembers(t *testing.T, kind reflect.Type, object, defs map[string]any, at string) {
	t.Helper()

	if ref, is := object["$ref"].(string); is {
		object, is = defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		require.True(t, is, at)
	}

	properties, is := object["properties"].(map[string]any)
	require.True(t, is, at)

	known := []string{}

	for field := range kind.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" || name == "image_digest" || name == "pinned" { // set when the sweep is submitted
			continue
		}

		known = append(known, name)

		member, is := properties[name].(map[string]any)
		require.True(t, is, "%s/%s is not in the schema", at, name)

		of := field.Type
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}

		if of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Struct && of != reflect.TypeFor[berth.Values]() {
			of = of.Elem()
			member, is = member["items"].(map[string]any)
			require.True(t, is, "%s/%s", at, name)
		}

		if of.Kind() == reflect.Struct && of != reflect.TypeFor[berth.Value]() {
			requireMembers(t, of, member, defs, at+"/"+name)
		}
	}

	for name := range properties {
		require.Contains(t, known, name, at)
	}
}
