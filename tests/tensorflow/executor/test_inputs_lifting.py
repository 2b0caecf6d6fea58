"""Inputs become one data set: what reaches model_fn equals what a plain session gets from the same `input_fn`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox

Batches = list[list[Any]]


def received(input_fn, steps: int = 100, batch_size: int | None = None, hook=None, **arguments: Any) -> Batches:
    """Every batch that model_fn is given, leaf by leaf, as the steps see it."""
    seen: Batches = []

    def record(*values):
        seen.append([np.array(value) for value in values])
        return np.float32(0)

    def model_fn(inputs, mode, **kwargs):
        leaves = tf.nest.flatten(inputs, expand_composites=True)
        recorded = tf.py_func(record, leaves, tf.float32)
        recorded.set_shape([])
        w = tf.get_variable("w", initializer=0.0)
        return mox.ModelSpec(loss=w * (1 + recorded), log_info={"zero": recorded}, hooks=[hook] if hook else None)

    mox.run(
        input_fn=input_fn,
        model_fn=model_fn,
        optimizer_fn=lambda: tf.train.GradientDescentOptimizer(0.0),
        run_mode="TRAIN",
        batch_size=batch_size,
        max_number_of_steps=steps,
        **arguments,
    )
    return seen


def plain(input_fn, steps: int = 100) -> Batches:
    """The same from a bare session, one `session.run` per element, to the end of the data."""
    seen: Batches = []
    with tf.Graph().as_default(), tf.Session() as session:
        returned = input_fn(mox.ModeKeys.TRAIN)
        leaves = tf.nest.flatten(returned, expand_composites=True)
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        session.run(tf.tables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        try:
            while len(seen) < steps:
                seen.append([np.array(value) for value in session.run(leaves)])
        except tf.errors.OutOfRangeError:
            pass
        coordinator.request_stop()
        coordinator.join(threads)
    return seen


def assert_equal(actual: Batches, expected: Batches) -> None:
    assert len(actual) == len(expected)
    for left, right in zip(actual, expected, strict=True):
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            np.testing.assert_array_equal(one, other)


def numbers_of(batches: Batches) -> list[Any]:
    return [values[0].tolist() for values in batches]


@pytest.fixture(autouse=True)
def no_debug(caplog):
    caplog.set_level("DEBUG", logger="tensorflow")


def was_lifted(caplog) -> bool:
    return not any("The input stays as input_fn built it" in record.getMessage() for record in caplog.records)


# --- input functions that a plain session runs as well ----------------------------------------------------------------

DATA = np.random.RandomState(1).rand(7, 4).astype(np.float32)


def bare_iterator(mode):
    return tf.data.Dataset.from_tensor_slices(DATA).make_one_shot_iterator().get_next()


def bare_pair(mode):
    return tf.data.Dataset.from_tensor_slices((DATA, np.arange(7))).make_one_shot_iterator().get_next()


def bare_dict(mode):
    return tf.data.Dataset.from_tensor_slices({"x": DATA, "a": np.arange(7)}).make_one_shot_iterator().get_next()


def function_iterator(mode):
    return tf.data.make_one_shot_iterator(tf.data.Dataset.from_tensor_slices(DATA)).get_next()


def reordered(mode):
    x, label = bare_pair(mode)
    return label, x


def part_of_the_element(mode):
    _, label = bare_pair(mode)
    return label


def per_sample_operations(mode):
    x, label = bare_pair(mode)
    x = tf.reshape(x, [2, 2])
    x = tf.transpose((x - 0.5) / 0.25)
    return x, tf.one_hot(label, 7), tf.strings.as_string(label)


def images(mode):
    x, _ = bare_pair(mode)
    image = tf.cast(tf.reshape(x, [2, 2, 1]) * 255, tf.uint8)
    image = tf.image.decode_png(tf.image.encode_png(image), channels=3)
    return tf.image.resize_images(tf.image.convert_image_dtype(image, tf.float32), [3, 5])


def parsed_examples(mode):
    records = []
    for row, label in zip(DATA, range(7), strict=True):
        features = {
            "x": tf.train.Feature(float_list=tf.train.FloatList(value=row)),
            "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
            "name": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"n%d" % label])),
        }
        records.append(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    record = tf.data.Dataset.from_tensor_slices(records).make_one_shot_iterator().get_next()
    parsed = tf.parse_single_example(
        record,
        {
            "x": tf.FixedLenFeature([4], tf.float32),
            "label": tf.FixedLenFeature([], tf.int64),
            "name": tf.FixedLenFeature([], tf.string),
        },
    )
    return parsed["x"], parsed["label"], parsed["name"]


def with_py_func(mode):
    x, label = bare_pair(mode)
    doubled = tf.py_func(lambda row, n: (row * n).astype(np.float32), [x, label], tf.float32)
    doubled.set_shape([4])
    return doubled, label


def with_py_function(mode):
    x, label = bare_pair(mode)
    out = tf.py_function(lambda row, n: row * tf.cast(n, tf.float32), [x, label], tf.float32)
    out.set_shape([4])
    return out


def with_table(mode):
    word = tf.data.Dataset.from_tensor_slices(["b", "a", "zzz"]).make_one_shot_iterator().get_next()
    keys = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([10, 20], tf.int64))
    return word, tf.lookup.StaticHashTable(keys, -1).lookup(word)


def with_mutable_table(mode):
    keys = tf.data.Dataset.range(3).make_one_shot_iterator().get_next()
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(tf.constant([0, 1], tf.int64), ["zero", "one"]), "many"
    )
    return table.lookup(keys)


def several_iterators(mode):
    first = tf.data.Dataset.range(5).make_one_shot_iterator().get_next()
    second = tf.data.Dataset.range(100, 103).make_one_shot_iterator().get_next()
    third = tf.data.Dataset.from_tensor_slices(["a", "b", "c", "d"]).make_one_shot_iterator().get_next()
    return first * 2, second + first, third


def unused_iterator(mode):
    tf.data.Dataset.range(1).make_one_shot_iterator()
    return tf.data.Dataset.range(4).make_one_shot_iterator().get_next()


def initializable_method(mode):
    iterator = tf.data.Dataset.range(5).make_initializable_iterator()
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    return iterator.get_next() + 1


def initializable_function(mode):
    iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(5), shared_name="shared")
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    return iterator.get_next() + 1


def reinitializable(mode):
    dataset = tf.data.Dataset.range(5)
    iterator = tf.data.Iterator.from_structure(tf.int64, tf.TensorShape([]))
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.make_initializer(dataset))
    return iterator.get_next() * 3


def feedable_without_a_placeholder(mode):
    dataset = tf.data.Dataset.range(5)
    handle = dataset.make_one_shot_iterator().string_handle()
    iterator = tf.data.Iterator.from_string_handle(handle, tf.int64, tf.TensorShape([]))
    return iterator.get_next() + 10


def with_variable(mode):
    scale = tf.get_variable("scale", initializer=[1.0, 2.0, 3.0, 4.0], trainable=False)
    return bare_iterator(mode) * scale + tf.Variable(1.0, trainable=False)


def variable_inside_the_data_set(mode):
    offset = tf.get_variable("offset", initializer=tf.constant(5, tf.int64), trainable=False)
    iterator = tf.data.Dataset.range(4).map(lambda n: n + offset).make_initializable_iterator()
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    return iterator.get_next()


def with_cond(mode):
    number = tf.data.Dataset.range(6).make_one_shot_iterator().get_next()
    return tf.cond(number % 2 > 0, lambda: number * 10, lambda: -number)


def with_while(mode):
    number = tf.data.Dataset.range(6).make_one_shot_iterator().get_next()
    _, total = tf.while_loop(
        lambda i, total: i <= number, lambda i, total: (i + 1, total + i), [tf.constant(0, tf.int64)] * 2
    )
    return total


def with_map_fn(mode):
    return tf.map_fn(lambda value: value * value, bare_iterator(mode))


def with_assert_and_control(mode):
    x = bare_iterator(mode)
    with tf.control_dependencies([tf.assert_less(x, 2.0)]):
        return tf.identity(x)


def with_large_constant(mode):
    table = tf.constant(np.arange(40000, dtype=np.float32).reshape(20000, 2))
    number = tf.data.Dataset.range(4).make_one_shot_iterator().get_next()
    return tf.gather(table, number * 4999)


def with_generator(mode):
    def generate():
        for count in range(4):
            yield np.full([3], count, np.float32), "w%d" % count

    dataset = tf.data.Dataset.from_generator(generate, (tf.float32, tf.string), ([3], []))
    values, word = dataset.make_one_shot_iterator().get_next()
    return values + 0.5, word


def seeded_shuffle(mode):
    return tf.data.Dataset.range(20).shuffle(20, seed=3).make_one_shot_iterator().get_next()


def ready_batches(mode):
    x, label = tf.data.Dataset.from_tensor_slices((DATA, np.arange(7))).batch(3).make_one_shot_iterator().get_next()
    return x - tf.reduce_mean(x), label


def sparse(mode):
    number = tf.data.Dataset.range(4).make_one_shot_iterator().get_next()
    dense = tf.one_hot(number, 5) * tf.cast(number, tf.float32)
    return tf.sparse.from_dense(dense)


def sparse_elements(mode):
    rows = tf.SparseTensor([[0, 1], [2, 0], [2, 3]], [1.0, 2.0, 3.0], [3, 4])
    iterator = tf.data.Dataset.from_tensor_slices(rows).make_initializable_iterator()
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    return iterator.get_next()


def sparse_between(mode):
    number = tf.data.Dataset.range(4).make_one_shot_iterator().get_next()
    dense = tf.one_hot(number, 5) * tf.cast(number, tf.float32)
    return tf.sparse.to_dense(tf.sparse.from_dense(dense)), number


def strings(mode):
    word = tf.data.Dataset.from_tensor_slices(["a b", "c", ""]).make_one_shot_iterator().get_next()
    return tf.strings.join([word, "!"]), tf.strings.length(word)


def unicode_strings(mode):
    return tf.data.Dataset.from_tensor_slices(["数字", "é"]).make_one_shot_iterator().get_next()


def other_types(mode):
    number = tf.data.Dataset.range(3).make_one_shot_iterator().get_next()
    kinds = [tf.uint8, tf.int32, tf.float64, tf.float16, tf.bool, tf.complex64]
    return [tf.cast(number, kind) for kind in kinds]


LIFTED = [
    bare_iterator, bare_pair, bare_dict, function_iterator, reordered, part_of_the_element, per_sample_operations,
    images, parsed_examples, with_py_func, with_py_function, with_table, with_mutable_table, several_iterators,
    unused_iterator, initializable_method, initializable_function, with_variable, variable_inside_the_data_set,
    with_cond, with_while, with_map_fn, with_assert_and_control, with_large_constant, with_generator, seeded_shuffle,
    ready_batches, sparse, sparse_elements, sparse_between, strings, unicode_strings, other_types,
]  # fmt: skip


@pytest.mark.parametrize("input_fn", LIFTED)
def test_lifted_inputs_equal_a_plain_session(input_fn, caplog):
    assert_equal(received(input_fn), plain(input_fn))
    assert was_lifted(caplog)


@pytest.mark.parametrize("input_fn", [reinitializable, feedable_without_a_placeholder])
def test_inputs_that_stay_in_the_graph_equal_a_plain_session(input_fn, caplog):
    assert_equal(received(input_fn), plain(input_fn))
    assert not was_lifted(caplog)


@pytest.mark.parametrize(
    "input_fn",
    [bare_pair, per_sample_operations, with_py_func, with_table, several_iterators, initializable_method,
     reinitializable, feedable_without_a_placeholder, with_variable, with_generator, strings],
)  # fmt: skip
@pytest.mark.parametrize("batch_size", [3])
def test_batches_are_the_samples_put_together(input_fn, batch_size):
    samples = plain(input_fn)
    expected = [
        [np.stack(leaf) for leaf in zip(*samples[start : start + batch_size], strict=True)]
        for start in range(0, len(samples), batch_size)
    ]
    assert_equal(received(input_fn, batch_size=batch_size), expected)


def test_batches_of_sparse_samples():
    (indices, values, shape), (tail, _, _) = received(sparse, batch_size=3)
    assert indices.tolist() == [[1, 1], [2, 2]]
    assert values.tolist() == [1, 2]
    assert shape.tolist() == [3, 5]
    assert tail.tolist() == [[0, 3]]


def test_sparse_tensor_reaches_model_fn_as_one():
    kinds = []

    def model_fn(inputs, mode):
        kinds.append(type(inputs[0]))
        w = tf.get_variable("w", shape=[5, 1], initializer=tf.zeros_initializer())
        product = tf.sparse.sparse_dense_matmul(inputs[0], w)
        return mox.ModelSpec(loss=tf.reduce_sum(product), log_info={"rows": tf.shape(product)[0]})

    result = mox.run(
        input_fn=sparse, model_fn=model_fn, optimizer_fn=lambda: tf.train.GradientDescentOptimizer(0.1), batch_size=4,
        run_mode="TRAIN", max_number_of_steps=9,
    )  # fmt: skip
    assert kinds == [tf.SparseTensor]
    assert result.log_info == {"rows": 4.0}
    assert result.samples == 4


# --- what a plain session cannot show, or shows by chance -------------------------------------------------------------


def two_calls(iterator_of):
    def input_fn(mode):
        iterator = iterator_of(tf.data.Dataset.range(7))
        first, second = iterator.get_next(), iterator.get_next()
        return first, second * 10

    return input_fn


@pytest.mark.parametrize(
    "make", [lambda dataset: dataset.make_one_shot_iterator(), lambda dataset: dataset.make_initializable_iterator()]
)
def test_two_calls_of_get_next_are_consecutive_elements(make):
    values = [[int(first), int(second)] for first, second in received(two_calls(make))]
    assert values == [[0, 10], [2, 30], [4, 50]]


def test_two_calls_of_get_next_on_pairs():
    def input_fn(mode):
        iterator = tf.data.Dataset.from_tensor_slices((DATA[:6], np.arange(6))).make_one_shot_iterator()
        (x, label), (other, other_label) = iterator.get_next(), iterator.get_next()
        return x + other, label, other_label

    seen = received(input_fn)
    assert [[int(label), int(other)] for _, label, other in seen] == [[0, 1], [2, 3], [4, 5]]
    np.testing.assert_array_equal([x for x, _, _ in seen], DATA[:6:2] + DATA[1:6:2])


def test_three_calls_of_get_next_batched():
    def input_fn(mode):
        iterator = tf.data.Dataset.range(9).make_one_shot_iterator()
        return tf.stack([iterator.get_next() for _ in range(3)])

    assert numbers_of(received(input_fn, batch_size=2)) == [[[0, 1, 2], [3, 4, 5]], [[6, 7, 8]]]


@pytest.mark.parametrize(
    "make", [lambda dataset: dataset.make_initializable_iterator(), tf.data.make_initializable_iterator]
)
def test_initializable_iterator_that_nobody_initialises(make):
    assert numbers_of(received(lambda mode: make(tf.data.Dataset.range(3)).get_next())) == [0, 1, 2]


@pytest.mark.parametrize(
    "make",
    [lambda dataset: dataset.make_one_shot_iterator(), lambda dataset: dataset.make_initializable_iterator()],
)
def test_iterator_returned(make):
    assert numbers_of(received(lambda mode: make(tf.data.Dataset.range(3)))) == [0, 1, 2]
    assert numbers_of(received(lambda mode: make(tf.data.Dataset.range(3)), batch_size=2)) == [[0, 1], [2]]


class AfterCreate(tf.train.SessionRunHook):
    """Runs something when the session is there, as users do."""

    def __init__(self):
        self.action = None

    def after_create_session(self, session, coord):
        self.action(session)


@pytest.mark.parametrize("batch_size", [None, 2])
def test_iterator_over_a_placeholder_initialised_by_a_hook(batch_size):
    hook = AfterCreate()

    def input_fn(mode):
        rows = tf.placeholder(tf.float32, [None, 4])
        iterator = tf.data.Dataset.from_tensor_slices(rows).make_initializable_iterator()
        hook.action = lambda session: session.run(iterator.initializer, {rows: DATA[:4]})
        return iterator.get_next() * 2

    seen = np.concatenate([np.atleast_2d(values) for (values,) in received(input_fn, batch_size=batch_size, hook=hook)])
    np.testing.assert_array_equal(seen, DATA[:4] * 2)


def test_a_hook_that_initialises_a_lifted_iterator_does_no_harm():
    hook = AfterCreate()

    def input_fn(mode):
        iterator = tf.data.Dataset.range(4).make_initializable_iterator()
        hook.action = lambda session: session.run(iterator.initializer)
        return iterator.get_next()

    assert numbers_of(received(input_fn, hook=hook)) == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", ["one shot", "initializable"])
def test_feedable_iterator(kind):
    class Handle(tf.train.SessionRunHook):
        def after_create_session(self, session, coord):
            if kind == "initializable":
                session.run(self.iterator.initializer)
            self.value = session.run(self.string_handle)

        def before_run(self, run_context):
            return tf.train.SessionRunArgs(None, {self.placeholder: self.value})

    hook = Handle()

    def input_fn(mode):
        dataset = tf.data.Dataset.range(4)
        hook.placeholder = tf.placeholder(tf.string, [])
        feedable = tf.data.Iterator.from_string_handle(
            hook.placeholder, tf.data.get_output_types(dataset), tf.data.get_output_shapes(dataset)
        )
        if kind == "one shot":
            hook.iterator = dataset.make_one_shot_iterator()
        else:
            hook.iterator = dataset.make_initializable_iterator()
        hook.string_handle = hook.iterator.string_handle()
        return feedable.get_next() + 1

    assert numbers_of(received(input_fn, hook=hook)) == [1, 2, 3, 4]


# --- queues -----------------------------------------------------------------------------------------------------------


def slices(mode):
    x, label = tf.train.slice_input_producer(
        [tf.constant(DATA), tf.constant(np.arange(7))], num_epochs=2, shuffle=False
    )
    return x * 2, label


def queue_batches(mode):
    x, label = slices(mode)
    return tf.train.batch([x, label], batch_size=4, allow_smaller_final_batch=True)


def strings_in_a_queue(mode):
    queue = tf.train.string_input_producer(["a", "b", "c"], num_epochs=1, shuffle=False)
    return tf.strings.join([queue.dequeue(), "!"])


@pytest.mark.parametrize("input_fn", [slices, queue_batches, strings_in_a_queue])
def test_queues_equal_a_plain_session(input_fn, caplog):
    expected = plain(input_fn)
    assert len(expected) in (14, 4, 3)
    assert_equal(received(input_fn), expected)
    assert not was_lifted(caplog)


def test_queue_of_samples_is_batched():
    expected = np.concatenate([DATA, DATA]) * 2
    seen = received(slices, batch_size=4)
    assert [len(label) for _, label in seen] == [4, 4, 4, 2]
    np.testing.assert_array_equal(np.concatenate([x for x, _ in seen]), expected)


def test_shuffled_queue_without_end():
    def input_fn(mode):
        x, label = tf.train.slice_input_producer([tf.constant(DATA), tf.constant(np.arange(7))], seed=4)
        return tf.train.shuffle_batch([x, label], 2, capacity=10, min_after_dequeue=4, seed=5)

    seen = received(input_fn, steps=6)
    for x, label in seen:
        np.testing.assert_array_equal(x, DATA[label])
    assert len(seen) == 6


def test_files_read_through_queues(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text("".join(f"{name}{line}\n" for line in range(3)))

    def input_fn(mode):
        names = tf.train.string_input_producer([str(tmp_path / "a"), str(tmp_path / "b")], num_epochs=1, shuffle=False)
        _, line = tf.TextLineReader().read(names)
        return line

    assert numbers_of(received(input_fn)) == [b"a0", b"a1", b"a2", b"b0", b"b1", b"b2"]


def broken(mode, number):
    def fail(value):
        if value == 3:
            raise ZeroDivisionError("sample 3 is broken")
        return value

    return tf.py_func(fail, [number], tf.int64)


def broken_queue(mode):
    number = tf.train.input_producer(tf.range(8, dtype=tf.int64), num_epochs=1, shuffle=False).dequeue()
    value = broken(mode, number)
    value.set_shape([])
    return tf.train.batch([value], batch_size=1)


def broken_map(mode):
    return broken(mode, tf.data.Dataset.range(8).make_one_shot_iterator().get_next())


@pytest.mark.parametrize("input_fn", [broken_queue, broken_map])
def test_an_error_in_the_input_is_not_the_end_of_the_data(input_fn):
    with pytest.raises(tf.errors.OpError, match="sample 3 is broken"):
        received(input_fn)


# --- no iterator at all -----------------------------------------------------------------------------------------------


def test_constant_inputs_never_end(caplog):
    seen = received(lambda mode: (tf.constant([1.0, 2.0]), tf.constant("a")), steps=3, batch_size=2)
    assert [x.tolist() for x, _ in seen] == [[[1, 2], [1, 2]]] * 3
    assert [word.tolist() for _, word in seen] == [[b"a", b"a"]] * 3
    assert was_lifted(caplog)


def test_random_inputs_differ_from_sample_to_sample():
    def input_fn(mode):
        return tf.random_uniform([3], 5, 9), tf.random_normal([], seed=3)

    seen = received(input_fn, steps=10, batch_size=4)
    x = np.concatenate([values for values, _ in seen])
    y = np.concatenate([values for _, values in seen])
    assert x.shape == (40, 3)
    assert ((x >= 5) & (x < 9)).all()
    assert len(np.unique(x)) == 120
    assert len(np.unique(y)) == 40


def test_random_work_per_sample_is_reproducible_with_a_seed():
    def input_fn(mode):
        number = tf.data.Dataset.range(64).shuffle(64).repeat().make_one_shot_iterator().get_next()
        return number, tf.random_uniform([2])

    def once():
        with tf.Graph().as_default():
            tf.set_random_seed(5)
            return received(input_fn, steps=40, batch_size=16)

    first = once()
    for _ in range(3):
        assert_equal(once(), first)


def test_variable_returned():
    def input_fn(mode):
        return tf.get_variable("fixed", initializer=[1.0, 2.0], trainable=False)

    assert numbers_of(received(input_fn, steps=2)) == [[1, 2]] * 2


def test_variable_of_the_input_is_saved_and_restored(tmp_path):
    received(with_variable, log_dir=tmp_path)
    reader = tf.train.NewCheckpointReader(tf.train.latest_checkpoint(str(tmp_path)))
    np.testing.assert_array_equal(reader.get_tensor("scale"), [1, 2, 3, 4])


def test_variable_that_the_input_writes_stays_in_the_graph(caplog):
    def input_fn(mode):
        count = tf.get_variable("count", initializer=0, trainable=False)
        return tf.assign_add(count, 1)

    assert numbers_of(received(input_fn, steps=3)) == [1, 2, 3]
    assert not was_lifted(caplog)


# --- shapes -----------------------------------------------------------------------------------------------------------


def static_shapes(input_fn, batch_size=None) -> list[Any]:
    shapes = []

    def model_fn(inputs, mode):
        shapes.extend(tensor.shape for tensor in inputs)
        w = tf.get_variable("w", initializer=0.0)
        return mox.ModelSpec(loss=w * (1.0 + 0.0 * tf.cast(tf.size(inputs[0]), tf.float32)))

    mox.run(
        input_fn=input_fn, model_fn=model_fn, optimizer_fn=lambda: tf.train.GradientDescentOptimizer(0.1),
        run_mode="TRAIN", batch_size=batch_size, max_number_of_steps=1,
    )  # fmt: skip
    return [shape.as_list() if shape.rank is not None else None for shape in shapes]


def hidden(value, shape):
    tensor = tf.py_func(lambda: value, [], tf.float32)
    if shape is not None:
        tensor.set_shape(shape)
    return tensor


def test_set_shape_is_kept():
    value = np.zeros([2, 3], np.float32)

    def input_fn(mode):
        return hidden(value, [2, 3]), hidden(value, [None, 3]), hidden(value, None)

    assert static_shapes(input_fn) == [[2, 3], [None, 3], None]
    assert static_shapes(input_fn, batch_size=4) == [[4, 2, 3], [4, None, 3], [4, None, None]]


def test_set_shape_on_the_element_itself():
    def input_fn(mode):
        dataset = tf.data.Dataset.from_generator(lambda: iter([np.zeros([2, 3], np.float32)]), tf.float32)
        element = dataset.make_one_shot_iterator().get_next()
        element.set_shape([2, 3])
        return element

    assert static_shapes(input_fn) == [[2, 3]]
    assert static_shapes(input_fn, batch_size=2) == [[None, 2, 3]]


def test_v1_shapes_in_input_fn():
    def input_fn(mode):
        element = tf.data.Dataset.from_tensor_slices(DATA).make_one_shot_iterator().get_next()
        assert element.shape[0].value == 4
        assert element.get_shape().as_list() == [4]
        return element

    assert len(received(input_fn)) == 7


def test_iterator_properties_of_that_time():
    def input_fn(mode):
        iterator = tf.data.Dataset.from_tensor_slices((DATA, np.arange(7))).make_one_shot_iterator()
        assert iterator.output_types == (tf.float32, tf.int64)
        assert [shape.as_list() for shape in iterator.output_shapes] == [[4], []]
        return iterator.get_next(name="named")

    assert len(received(input_fn)) == 7
