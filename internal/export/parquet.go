package export

import (
	"io"
	"reflect"
	"slices"
	"time"

	"github.com/parquet-go/parquet-go"
)

// rowGroup is how many rows are kept until they are written: a few MB.
const rowGroup = 20_000

type parquetWriter struct {
	out     *parquet.GenericWriter[any]
	columns []Column
	rows    [1]parquet.Row
}

func newParquet(to io.Writer, columns []Column) *parquetWriter {
	schema := parquet.NewSchema("berth", newTableNode(columns))

	return &parquetWriter{
		columns: columns,
		out: parquet.NewGenericWriter[any](to, schema,
			parquet.Compression(&parquet.Snappy), parquet.MaxRowsPerRowGroup(rowGroup), parquet.CreatedBy("berth", "1", "")),
	}
}

func (w *parquetWriter) Write(row Row) error {
	cells := w.rows[0][:0]

	for i, cell := range row {
		level := 1 // the value is present
		if cell == nil || w.columns[i].Required {
			level = 0
		}

		cells = append(cells, parquetCell(cell).Level(0, level, i))
	}

	w.rows[0] = cells
	_, err := w.out.WriteRows(w.rows[:])

	return err
}

// Flush writes nothing: small row groups are slow to read.
func (w *parquetWriter) Flush() error { return nil }

func (w *parquetWriter) Close() error { return w.out.Close() }

func parquetCell(cell any) parquet.Value {
	switch v := cell.(type) {
	case string:
		return parquet.ByteArrayValue([]byte(v))
	case int64:
		return parquet.Int64Value(v)
	case float64:
		return parquet.DoubleValue(v)
	case bool:
		return parquet.BooleanValue(v)
	case time.Time:
		return parquet.Int64Value(v.UnixMicro())
	default:
		return parquet.NullValue()
	}
}

// tableNode is a schema whose columns keep their order; a parquet.Group sorts
// them by name.
type tableNode struct {
	parquet.Group

	order []string
}

func newTableNode(columns []Column) tableNode {
	n := tableNode{Group: make(parquet.Group, len(columns))}

	for _, c := range columns {
		node := parquetNode(c.Kind)
		if !c.Required {
			node = parquet.Optional(node)
		}

		n.Group[c.Name] = node
		n.order = append(n.order, c.Name)
	}

	return n
}

// Fields are the columns in their order.
func (n tableNode) Fields() []parquet.Field {
	fields := n.Group.Fields()

	slices.SortFunc(fields, func(a, b parquet.Field) int { return slices.Index(n.order, a.Name()) - slices.Index(n.order, b.Name()) })

	return fields
}

// GoType is a struct that is never made: rows are written as values.
func (n tableNode) GoType() reflect.Type {
	return reflect.TypeFor[struct{}]()
}

func parquetNode(kind Kind) parquet.Node {
	switch kind {
	case Integer:
		return parquet.Int(64)
	case Float:
		return parquet.Leaf(parquet.DoubleType)
	case Bool:
		return parquet.Leaf(parquet.BooleanType)
	case Time:
		return parquet.Timestamp(parquet.Microsecond)
	default:
		return parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
	}
}
