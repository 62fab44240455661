/* Conjugate gradients on a grid of rows and columns: a row sums by recursive doubling, then transposes. */
#include "mini.h"

static int rows, columns, row, column;

KERNEL void sum_row(void) {
  int length = size * size / rows;
  for (int step = 1; step < columns; step *= 2)
    swap(row * columns + (column ^ step), row * columns + (column ^ step), length, 1, WORLD);
}
KERNEL void transpose(void) {
  int other = rows == columns ? column * columns + row : (column / 2) * columns + 2 * row + column % 2;
  if (other != rank)
    swap(other, other, size * size / columns, 2, WORLD);
}
KERNEL void dot(void) {
  for (int step = 1; step < columns; step *= 2)
    swap(row * columns + (column ^ step), row * columns + (column ^ step), 1, 3, WORLD);
}
KERNEL void multiply(void) { work(8L * size * size / ranks + size * size / rows); }

int main(int argc, char **argv) {
  start(argc, argv);
  for (rows = 1; 4 * rows * rows <= ranks; rows *= 2)
    ;
  columns = ranks / rows;
  row = rank / columns;
  column = rank % columns;
  for (int i = 0; i < 5; i++) {
    multiply();
    sum_row();
    if (rows == columns)
      transpose();
    dot();
    dot();
  }
  MPI_Finalize();
  return 0;
}
