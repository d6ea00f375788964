package search

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/berthml/berth"
)

// absent stands for a part that one of two keys does not have.
const absent = "absent"

// Nearest returns the index of the others that has the most parts in common with p, the first
// of several, and the differences from it. The index is -1 when there are no others.
func (p StageParts) Nearest(others []StageParts) (nearest int, differences []string) {
	nearest = -1

	for i, other := range others {
		if d := p.Differences(other); nearest < 0 || len(d) < len(differences) {
			nearest, differences = i, d
		}
	}

	return nearest, differences
}

// Differences are the parts in which p is not as another key of the same stage, in plain words
// such as "values: width is 32, there it was 16". A cause comes before its effects:
// an earlier stage first, and a value before the command that contains it.
func (p StageParts) Differences(other StageParts) []string {
	parts := []struct {
		name string
		is   []string
	}{
		{"earlier stages", changes(numbered("the key of input", shortened(p.Earlier)), numbered("the key of input", shortened(other.Earlier)))},
		{"image", changed("the digest", p.Image, other.Image)},
		{"data sets", changes(versions(p.Datasets), versions(other.Datasets))},
		{"values", changes(texts(p.Values), texts(other.Values))},
		{"command", changes(numbered("argument", p.Command), numbered("argument", other.Command))},
		{"environment", changes(p.Environment, other.Environment)},
		{"workdir", changed("it", p.Workdir, other.Workdir)},
		{"entrypoint", changed("the image's entrypoint", used(p.Entrypoint), used(other.Entrypoint))},
		{"secrets", changes(mounts(p.Secrets), mounts(other.Secrets))},
		{"network", changed("the only sweep that shares it", p.Sweep, other.Sweep)},
	}

	var differences []string

	for _, part := range parts {
		if len(part.is) > 0 {
			differences = append(differences, part.name+": "+strings.Join(part.is, "; "))
		}
	}

	return differences
}

// changes says which entries differ, by name.
func changes(is, was map[string]string) (list []string) {
	names := maps.Clone(was)
	if names == nil {
		names = map[string]string{}
	}

	maps.Copy(names, is)

	for _, name := range slices.SortedFunc(maps.Keys(names), naturally) {
		now, isThere := is[name]
		before, wasThere := was[name]

		if now != before || isThere != wasThere {
			list = append(list, change(name, entry(now, isThere), entry(before, wasThere)))
		}
	}

	return list
}

// changed says how one text differs, where an empty one is absent.
func changed(name, is, was string) []string {
	if is == was {
		return nil
	}

	return []string{change(name, entry(is, is != ""), entry(was, was != ""))}
}

func change(name, is, was string) string { return name + " is " + is + ", there it was " + was }

func entry(text string, there bool) string {
	switch {
	case !there:
		return absent
	case text == "":
		return "empty"
	default:
		return text
	}
}

// naturally sorts shorter names first, so that argument 2 comes before argument 10.
func naturally(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}

	return strings.Compare(a, b)
}

// numbered are the items of a list by their place, from 1.
func numbered(what string, items []string) map[string]string {
	by := make(map[string]string, len(items))
	for i, item := range items {
		by[what+" "+strconv.Itoa(i+1)] = item
	}

	return by
}

// shortened are beginnings of keys that find their stages.
func shortened(keys []string) []string {
	out := make([]string, len(keys))
	for i, key := range keys {
		out[i] = berth.ShortKey(key)
	}

	return out
}

func texts(values berth.Assignment) map[string]string {
	by := make(map[string]string, len(values))
	for name, value := range values {
		by[name] = value.String()
	}

	return by
}

func versions(datasets []berth.DatasetMount) map[string]string {
	by := make(map[string]string, len(datasets))
	for _, dataset := range datasets {
		by[dataset.Name] = "version " + dataset.Version + " at " + dataset.Target
	}

	return by
}

func mounts(secrets []berth.SecretMount) map[string]string {
	by := make(map[string]string, len(secrets))
	for _, secret := range secrets {
		by[secret.Name] = "mounted at " + secret.File
	}

	return by
}

func used(yes bool) string {
	if yes {
		return "used"
	}

	return "not used"
}
