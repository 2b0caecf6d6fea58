"""Lifting: what reaches model_fn equals what a plain session gets from the same `input_fn`."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from received_inputs import DATA, assert_equal, numbers_of, plain, received, was_lifted

import moxing.tensorflow as mox


@pytest.fixture(autouse=True)
def no_debug(caplog):
    caplog.set_level("DEBUG", logger="tensorflow")


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


@pytest.mark.slow
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
